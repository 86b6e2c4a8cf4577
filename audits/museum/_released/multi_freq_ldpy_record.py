"""multi-freq-ldpy's random sampling plus fake data, by generalised randomised response: two bits, epsilon 1."""

from __future__ import annotations

from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client


def report(record):
    """Release the report of one person, two bits as one number."""
    return [int(value) for value in RSpFD_GRR_Client([record >> 1, record & 1], [2, 2], 2, 1.0)]
