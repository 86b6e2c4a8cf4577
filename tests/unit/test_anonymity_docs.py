import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "anonymity_is_not_privacy.md"


def test_the_page_runs_as_printed():
    failures, examples = doctest.testfile(str(PAGE), module_relative=False)
    assert examples > 15
    assert failures == 0
