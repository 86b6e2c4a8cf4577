"""Mechanisms that break what they claim, each with its bug in a sentence and its true epsilon: an examination paper."""
