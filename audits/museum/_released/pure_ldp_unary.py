"""pure-LDP's unary encoding of four items."""

from __future__ import annotations

from pure_ldp.frequency_oracles.unary_encoding import UEClient


def client(optimised):
    """Return the function of an item that a client calls."""
    return UEClient(epsilon=1.0, d=4, use_oue=optimised, index_mapper=lambda item: item).privatise


symmetric, optimised = client(False), client(True)
