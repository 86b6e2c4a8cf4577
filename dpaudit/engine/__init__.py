"""The black-box audit: draw outputs on pairs of data sets, bet against the claim, report what was found.

One audit is a `run`: it takes a `request`, samples pairs in rounds, and `conclude` builds the result. The packages, from the
bottom up: `encoding` and `evidence`, `views`, `sampling`, `search`, `witness`, `timing`.
"""
