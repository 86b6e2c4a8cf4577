"""Names of packages that are imported on first use."""

import pickle
import subprocess
import sys

import pytest

import dpaudit
from dpaudit import accuracy, anonymity, exact, statements


@pytest.mark.parametrize("package", [dpaudit, accuracy, anonymity, exact, statements], ids=lambda it: it.__name__)
def test_every_listed_name_is_there(package):
    assert len(package.__all__) == len(set(package.__all__)) > 5
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_a_name_may_be_a_submodule():
    assert accuracy.deciles.__name__ == "dpaudit.accuracy.bounds.deciles"
    assert dpaudit.exact is exact


def test_a_wrong_name_has_a_hint():
    with pytest.raises(
        AttributeError, match=r"module 'dpaudit.exact' has no attribute 'Laplac'. Did you mean 'Laplace'\?"
    ):
        exact.Laplac  # noqa: B018


def test_a_class_is_the_one_of_its_module():
    law = exact.Laplace(0.0, 1.0)
    assert pickle.loads(pickle.dumps(law)) == law
    assert type(law).__module__ == "dpaudit.exact.laws.continuous"


def test_a_name_is_not_imported_before_it_is_used():
    program = "import sys; from dpaudit import anonymity; print('pandas' in sys.modules, anonymity.Table.__name__)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "Table"]
