"""Attributes, items and closure cells that are replaced for a while, and put back."""

from __future__ import annotations

from typing import Any


class Undo:
    """Replaced values, with those that were there before."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any]] = []
        self._items: list[tuple[Any, Any, bool, Any]] = []

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute."""
        self._attributes.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def cell(self, cell: Any, value: Any) -> None:
        """Replace the contents of a closure cell."""
        self.attribute(cell, "cell_contents", value)

    def item(self, mapping: Any, key: Any, value: Any) -> None:
        """Replace or add an item."""
        self._items.append((mapping, key, key in mapping, mapping.get(key)))
        mapping[key] = value

    def all(self) -> None:
        """Put everything back, the last first."""
        for mapping, key, known, before in reversed(self._items):
            if known:
                mapping[key] = before
            else:
                mapping.pop(key, None)
        for owner, name, before in reversed(self._attributes):
            setattr(owner, name, before)
