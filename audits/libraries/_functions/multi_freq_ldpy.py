"""Clients of multi-freq-ldpy."""

from __future__ import annotations

from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Client
from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Client
from multi_freq_ldpy.long_freq_est.L_OUE import L_OUE_Client
from multi_freq_ldpy.long_freq_est.L_SOUE import L_SOUE_Client
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client
from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client, RSpFD_UE_zero_Client
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client


def grr(item):
    return int(GRR_Client(item, 4, 1.0))


def unary(item):
    return UE_Client(item, 4, 1.0, False)


def unary_optimised(item):
    return UE_Client(item, 4, 1.0, True)


def histogram(item):
    return HE_Client(item, 4, 1.0)


def subset(item):
    return SS_Client(item, 10, 1.0)


def subset_as_set(item):
    return sorted(SS_Client(item, 10, 1.0).tolist())


def local_hashing(item):
    """Release the value and the last digit of the seed, which decides nothing."""
    value, seed = LH_Client(item, 4, 1.0)
    return int(value), int(seed) % 2


def long_grr(item):
    return int(L_GRR_Client(item, 4, 2.0, 1.0))


def long_sue(item):
    return L_SUE_Client(item, 4, 2.0, 1.0)


def long_oue(item):
    return L_OUE_Client(item, 4, 2.0, 1.0)


def long_osue(item):
    return L_OSUE_Client(item, 4, 2.0, 1.0)


def long_soue(item):
    return L_SOUE_Client(item, 4, 2.0, 1.0)


def record_grr(record):
    return [int(value) for value in RSpFD_GRR_Client([record >> 1, record & 1], [2, 2], 2, 1.0)]


def record_unary(record):
    return [float(bit) for part in RSpFD_UE_zero_Client([record >> 1, record & 1], [2, 2], 2, 1.0) for bit in part]
