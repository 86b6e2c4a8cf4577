"""Clients of pure-LDP with four items."""

from __future__ import annotations

import numpy as np
from pure_ldp.frequency_oracles.apple_cms.cms_client import CMSClient
from pure_ldp.frequency_oracles.direct_encoding.de_client import DEClient
from pure_ldp.frequency_oracles.hadamard_mechanism.hadamard_mechanism_client import HadamardMechClient
from pure_ldp.frequency_oracles.hadamard_response.hr_client import HadamardResponseClient
from pure_ldp.frequency_oracles.histogram_encoding.he_client import HEClient
from pure_ldp.frequency_oracles.local_hashing.fast_lh_client import FastLHClient
from pure_ldp.frequency_oracles.priv_count_sketch.pcs_client import PCSClient
from pure_ldp.frequency_oracles.rappor.rappor_client import RAPPORClient
from pure_ldp.frequency_oracles.unary_encoding import UEClient


def same(item):
    return item


def digit(item):
    return int(item) % 4


def one(_):
    return 1


unary = UEClient(epsilon=1.0, d=4, use_oue=False, index_mapper=same).privatise
unary_optimised = UEClient(epsilon=1.0, d=4, use_oue=True, index_mapper=same).privatise
direct = DEClient(epsilon=1.0, d=4, index_mapper=same).privatise
histogram = HEClient(epsilon=1.0, d=4, index_mapper=same).privatise
local_hashing = FastLHClient(epsilon=1.0, d=4, k=8, use_olh=True, index_mapper=same).privatise
sketch = CMSClient(epsilon=1.0, hash_funcs=[digit], m=4).privatise
hadamard_sketch = CMSClient(epsilon=1.0, hash_funcs=[digit], m=4, is_hadamard=True).privatise
count_sketch = PCSClient(epsilon=1.0, l=1, w=4, hash_funcs=[(digit, one)]).privatise
hadamard_response = HadamardResponseClient(1.0, 4, None, index_mapper=same).privatise
# f of 0.755: log(((1 - f / 2) / (f / 2))^2) = 1.0
rappor = RAPPORClient(f=0.7551, m=4, hash_funcs=[[digit]], num_of_cohorts=1, index_mapper=same).privatise
_hadamard = HadamardMechClient(1.0, 4, 2, index_mapper=same)


def hadamard_mechanism(item):
    """Release what the client returns, by its type and contents."""
    answer = _hadamard.privatise(item)
    return type(answer).__name__, [(int(place), int(value)) for place, value in answer]


def hadamard_mechanism_values(item):
    """Release the contents of what the client returns, in one form."""
    return np.array([(int(place), int(value)) for place, value in _hadamard.privatise(item)]).ravel()
