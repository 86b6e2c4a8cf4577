"""Reference mechanisms: the folder ``mechanisms`` of the repository, under a name that no other package has.

The wheel holds a copy of that folder in the place of this file. In the repository, and with an editable install, this file
makes ``dpaudit.mechanisms`` a package whose modules are those of the folder.

>>> from dpaudit.mechanisms.laplace import LaplaceMechanism
>>> LaplaceMechanism(epsilon=1.0).claim
PureDP(epsilon=1.0, relation='answers')
"""

from __future__ import annotations

from pathlib import Path

__path__ = [str(Path(__file__).parents[2] / "mechanisms")]
