"""Mechanisms that break their claim, each with its bug in a sentence and its true epsilon. An audit must find them."""
