"""Other auditors on the same ten mechanisms: how many outputs each needs to refute the claim.

``python -m benchmarks.peers --checkout StatDP=PATH ...`` makes an environment for each tool and runs all of them in one go. Tools
that PyPI has are installed from there; for the others you point at a checkout, which is put on the path and otherwise left as it
is. A driver (:mod:`benchmarks.peers.drivers`) gives a tool a budget of outputs, and returns whether it refutes the claim.
"""
