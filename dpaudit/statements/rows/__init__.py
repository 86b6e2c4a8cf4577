"""Rows of the ledger, one module for each part of a document."""
