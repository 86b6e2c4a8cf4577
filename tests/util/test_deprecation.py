"""Old names work, warn at the line that uses them, and never overrule the new ones."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import dataclass, fields, replace

import pytest

from dpaudit import Audit
from dpaudit._util.deprecation import checked_keywords, renamed_fields, with_new_names
from dpaudit.errors import InvalidArgument


@renamed_fields(wide="width")
@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    width: int = 1
    height: int = 1


@checked_keywords(wide="width")
def area(height: int, *, width: int = 1, depth: int = 1) -> int:
    return height * width * depth


def test_an_old_keyword_works_and_warns_here():
    with pytest.warns(
        DeprecationWarning, match=r"^wide= is now called width=; the old name will be removed\.$"
    ) as seen:
        assert area(2, wide=3) == 6
    assert seen[0].filename == __file__


def test_old_and_new_keyword_together_are_refused():
    with pytest.raises(InvalidArgument, match="wide= is the old name of width=; give width= alone"):
        area(2, wide=3, width=3)


def test_an_unknown_keyword_is_refused_with_a_suggestion():
    with pytest.raises(InvalidArgument, match=r"option='widht' must be one of 'depth', 'width'\. Did you mean 'width'"):
        area(2, widht=3)


def test_an_old_field_works_and_warns_here():
    with pytest.warns(DeprecationWarning, match=r"^wide= is now called width=") as made:
        box = Box(wide=3)
    with pytest.warns(DeprecationWarning, match=r"^Box\.wide is now called Box\.width") as read:
        assert box.wide == 3
    assert made[0].filename == read[0].filename == __file__


def test_a_definition_names_the_fields_that_it_has():
    with pytest.raises(InvalidArgument, match=r"no field samples=\. Options of dpaudit.audit go into options="):
        Audit(samples=100)
    with pytest.raises(InvalidArgument, match=r"Did you mean 'name'\?"):
        Audit(nam="count")
    with pytest.raises(InvalidArgument, match="takes its fields by name: name=, mechanism=, command=, mode=, claim="):
        Audit("count")


def test_new_names_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        box = replace(Box(width=3), height=2)
        assert pickle.loads(pickle.dumps(box)) == copy.deepcopy(box) == box
        assert [field.name for field in fields(box)] == ["width", "height"]
        assert area(2, width=3) == 6
        assert with_new_names({"width": 3}, {"wide": "width"}) == {"width": 3}
