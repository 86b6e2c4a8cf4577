"""multi-freq-ldpy's random sampling plus fake data, by generalised randomised response: two bits, epsilon 1."""

from __future__ import annotations

from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client


def report(record):
    """Release the report of one person, whose bits are the letters of a word."""
    return [int(value) for value in RSpFD_GRR_Client([int(bit) for bit in record], [2, 2], 2, 1.0)]
