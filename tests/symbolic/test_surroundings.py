"""Extraction in places where namespaces hold unusual objects, as those of notebooks do."""

from __future__ import annotations

import weakref
from typing import Any

import dpaudit


class Gone:
    pass


def test_a_dead_weak_proxy_in_the_namespace_does_not_stop_extraction() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "proxy": weakref.proxy(Gone()), "held": [weakref.proxy(Gone())]}
    exec("def noisy(data, rng):\n    return data + rng.laplace(scale=1.0)\n", names)
    assert dpaudit.verify(dpaudit.per_release(names["noisy"]), dpaudit.PureDP(1.0), [(0, 1)]).verified
