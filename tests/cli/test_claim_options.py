"""The claim that options describe: each kind, mistakes, and one check against a curve from end to end."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from dpaudit import ApproxDP, BoundedRange, GaussianDP, ProfileDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.cli.claim_options import claim_of
from dpaudit.cli.grammar import build_parser
from dpaudit.cli.main import main
from dpaudit.errors import InvalidArgument

REST = ("--rows", "integers(0, 1)", "--relation", "add-remove")


@pytest.mark.parametrize(
    ("words", "claim"),
    [
        (["--epsilon", "1"], PureDP(1.0)),
        (["--epsilon", "1", "--delta", "1e-5"], ApproxDP(1.0, 1e-5)),
        (["--mu", "0.5"], GaussianDP(0.5)),
        (["--rho", "0.1"], ZeroConcentratedDP(0.1)),
        (["--renyi", "8:0.5"], RenyiDP(8.0, 0.5)),
        (["--profile", "0:0.38,1:0.13"], ProfileDP([(0.0, 0.38), (1.0, 0.13)])),
        (["--curve", "0:0.38,1:0.13"], ProfileDP([(0.0, 0.38), (1.0, 0.13)])),
        (["--bounded-range", "2"], BoundedRange(2.0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["check", "verify"])
def test_each_claim_has_an_option(command, words, claim):
    assert claim_of(build_parser()[0].parse_args([command, "m.py:f", *words, *REST])) == claim


def test_a_budget_may_be_named_beside_the_points_of_a_claim():
    words = ["check", "m.py:f", "--profile", "ci", "--profile", "0:0.38,1:0.13", *REST]
    given = build_parser()[0].parse_args(words)
    assert (given.profile, claim_of(given)) == ("ci", ProfileDP([(0.0, 0.38), (1.0, 0.13)]))
    alone = build_parser()[0].parse_args(["check", "m.py:f", "--epsilon", "1", *REST])
    assert (alone.profile, claim_of(alone)) == (None, PureDP(1.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Give exactly one claim: one of --epsilon, --mu, .* Given: no claim"),
        ({"epsilon": 1.0, "mu": 1.0}, "Given: --epsilon and --mu"),
        ({"bounded_range": 1.0, "delta": 0.1}, "--delta=0.1 belongs to --epsilon; leave it out with --bounded-range"),
        ({"renyi": "8"}, "--renyi='8' must be ORDER:EPSILON"),
        ({"curve": "0:0.1,x:1"}, "--profile='x:1' must be EPSILON:DELTA"),
    ],
)
def test_mistakes_in_options_are_named(given, message):
    with pytest.raises(InvalidArgument, match=message):
        claim_of(argparse.Namespace(**given))


def test_a_function_is_checked_against_a_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text("def count(rows, size, rng):\n    return len(rows) + rng.normal(size=size)\n")
    words = ["check", "m.py:count", *REST, "--samples", "2e4", "--seed", "1", "--profile"]
    assert main([*words, "0:0.2,1:0.05"]) == 1
    assert "factor of the curve >=" in capsys.readouterr().out
    assert main([*words, "0:0.39,1:0.13,2:0.022"]) == 0
