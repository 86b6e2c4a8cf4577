"""Checks of accountants: known flaws are found and shrunk, right accountants pass, and the command line reports
both."""

from __future__ import annotations

import io
import json
import math

import pytest
from scipy.special import ndtr

from dpaudit import Relation, Verdict, check_accountant
from dpaudit._util import hypothesis_bridge
from dpaudit.accountant import Flaw, Part, true_epsilon
from dpaudit.adapters import accounting
from dpaudit.claims import gaussian_epsilon
from dpaudit.cli import main as cli
from dpaudit.errors import InvalidArgument

UNSAMPLED = {"sampling_rates": (1.0, 1.0), "examples": 30}


def exact(composition, delta):
    """Right for Gaussian steps without sampling, under add-remove."""
    return gaussian_epsilon(math.sqrt(sum(part.steps / part.noise_multiplier**2 for part in composition)), delta)


def central_limit(noise_multiplier, sampling_rate, steps, delta):
    """The formula of Opacus' "gdp" accountant: mu = q sqrt(T (exp(1 / z^2) - 1)) as though the limit were reached."""
    mu = sampling_rate * math.sqrt(steps * math.expm1(noise_multiplier**-2))
    return gaussian_epsilon(mu, delta)


def test_a_right_accountant_is_left_alone():
    found = check_accountant(exact, **UNSAMPLED)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert (found.findings, found.worst, found.refused) == ((), None, 0)
    assert found.checked >= 20
    assert "nothing found" in str(found)


def test_a_false_report_that_only_shrinking_another_flaw_meets_is_a_finding(monkeypatch):
    shrinking = []
    smallest = hypothesis_bridge.smallest
    monkeypatch.setattr(
        hypothesis_bridge, "smallest", lambda *given, **options: shrinking.append(1) or smallest(*given, **options)
    )

    def falls_with_steps(composition, delta):
        steps = sum(part.steps for part in composition)
        return 0.0 if shrinking and steps > 9 else 1e6 / max(steps, 9)

    found = check_accountant(falls_with_steps, steps=(1, 40), **UNSAMPLED)
    assert found.verdict is Verdict.VIOLATION
    assert {finding.flaw for finding in found.findings} == {Flaw.UNDERSTATES, Flaw.NOT_MONOTONE}


def test_opacus_central_limit_understates():
    assert central_limit(0.5, 0.01, 50, 1e-5) == pytest.approx(2.07, abs=5e-3)  # where the truth is 5.60
    found = check_accountant(central_limit, steps=(1, 10), noise_multipliers=(1.0, 2.0), examples=10)
    assert found.verdict is Verdict.VIOLATION
    (finding,) = found.findings
    assert finding.flaw is Flaw.UNDERSTATES
    (part,) = finding.composition  # a function of four numbers is called on one part
    assert finding.reported == central_limit(part.noise_multiplier, part.sampling_rate, part.steps, finding.delta)
    assert finding.reported < finding.truth.low == true_epsilon(finding.composition, finding.delta).low
    assert (part.noise_multiplier, part.steps) == (1.0, 1)  # as plain as can be
    assert found.worst.truth.low / found.worst.reported >= finding.truth.low / finding.reported


def test_renyi_accountant_under_replacement():
    """dp-accounting's RDP ignores that replacing moves a Gaussian event by twice its norm: 4.73 where the truth is 9.997."""
    rdp = pytest.importorskip("dp_accounting.rdp")
    from dp_accounting import NeighboringRelation

    replaced = accounting.accountant(lambda: rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE))
    found = check_accountant(replaced, relation=Relation.SUBSTITUTE, **UNSAMPLED)
    assert found.verdict is Verdict.VIOLATION
    assert found.findings[0].composition == (Part(1.0),)
    assert (found.findings[0].delta, round(found.findings[0].reported, 2)) == (1e-5, 4.73)
    assert found.findings[0].truth.low == pytest.approx(9.997, abs=5e-4)
    added = accounting.accountant(rdp.RdpAccountant)
    assert check_accountant(added, **UNSAMPLED).verdict is Verdict.NO_VIOLATION_FOUND
    assert check_accountant(added, noises=["laplace", "gaussian"], steps=(1, 5), examples=5).findings == ()


def test_our_own_accounting_is_right():
    from mechanisms.dp_sgd import epsilon_of
    from mechanisms.federated.accounting import exact_mu, poisson_epsilon

    def federated(noise_multiplier, sampling_rate, steps, delta):
        return gaussian_epsilon(exact_mu(noise_multiplier, rounds=steps), delta)

    assert check_accountant(federated, **UNSAMPLED).findings == ()
    ranges = {"noise_multipliers": (1.0, 10.0), "sampling_rates": (0.01, 1.0), "steps": (1, 5), "examples": 4}

    def training(noise_multiplier, sampling_rate, steps, delta):
        return epsilon_of(noise_multiplier, sampling_rate, steps, delta)

    def rounds(noise_multiplier, sampling_rate, steps, delta):
        return poisson_epsilon(
            noise_multiplier, sampling_rate=sampling_rate, rounds=steps, delta=delta, accountant="rdp"
        )

    assert check_accountant(training, **ranges).findings == ()
    assert check_accountant(rounds, **ranges).findings == ()


def test_every_flaw_has_its_name():
    def negative(composition, delta):
        return exact(composition, delta) if composition[0].noise_multiplier <= 5.0 else -1.0

    def forgets_steps(composition, delta):
        return 1e3 / composition[0].steps + exact(composition, delta)

    def undefined(composition, delta):
        return math.nan if composition[0].steps > 1 else exact(composition, delta)

    found = check_accountant(negative, **UNSAMPLED)
    flaws = {finding.flaw for finding in found.findings}
    assert {Flaw.NEGATIVE, Flaw.NOT_MONOTONE} >= flaws - {Flaw.UNDERSTATES}
    assert Flaw.NEGATIVE in flaws
    assert found.verdict is Verdict.VIOLATION  # no mechanism has an epsilon below log(1 - delta)
    found = check_accountant(forgets_steps, **UNSAMPLED)
    assert [finding.flaw for finding in found.findings] == [Flaw.NOT_MONOTONE]
    assert found.verdict is Verdict.NO_VIOLATION_FOUND  # too large is not false
    (finding,) = found.findings
    assert finding.weaker_reported < finding.reported
    assert "for what is less private" in str(found)
    found = check_accountant(undefined, **UNSAMPLED)
    assert [finding.flaw for finding in found.findings] == [Flaw.NOT_A_NUMBER]


def test_a_negative_epsilon_can_be_true():
    """Opacus' "prv" reports -0.054 at noise multiplier 1, sampling rate 0.001, delta 0.0625, above log(1 - delta)."""

    def below_zero(composition, delta):
        epsilon = exact(composition, delta)
        return epsilon if epsilon > 0.0 else 0.5 * math.log1p(-delta)

    found = check_accountant(below_zero, noise_multipliers=(10.0, 20.0), deltas=(0.05, 0.1), parts=1, **UNSAMPLED)
    assert [finding.flaw for finding in found.findings] == [Flaw.NEGATIVE]
    assert found.verdict is Verdict.NO_VIOLATION_FOUND


def test_refusals_are_counted():
    def one_part_only(composition, delta):
        (_,) = composition
        return exact(composition, delta)

    found = check_accountant(one_part_only, **UNSAMPLED)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.refused > 0
    assert "refused (ValueError: " in str(found)

    def never(composition, delta):
        raise NotImplementedError

    assert check_accountant(never, **UNSAMPLED).verdict is Verdict.INCONCLUSIVE


def test_the_same_seed_finds_the_same():
    def halved(composition, delta):
        return 0.5 * exact(composition, delta)

    one, other = (check_accountant(halved, **UNSAMPLED) for _ in range(2))
    assert one == other
    assert one.findings[0].composition == (Part(1.0),)


def test_misuse_is_refused():
    for changes, message in (
        ({"noises": "gaussian"}, "noises='gaussian' must be a list"),
        ({"noises": ["cauchy"]}, "noises='cauchy'"),
        ({"steps": 5}, "must be a pair"),
        ({"steps": (0, 3)}, r"steps\[0\]=0"),
        ({"relation": Relation.ANSWERS}, "relation="),
        ({"seconds": 0.0}, "seconds=0.0"),
        ({"exemples": 3}, "Did you mean 'examples'"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            check_accountant(exact, **changes)
    with pytest.raises(InvalidArgument, match="accountant=3"):
        check_accountant(3)
    with pytest.raises(InvalidArgument, match="returned 'one'; it must return epsilon"):
        check_accountant(lambda composition, delta: "one", examples=3)


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import math\n"
        "from dpaudit.claims import gaussian_epsilon\n"
        "print('loaded')\n"
        "def right(noise_multiplier, sampling_rate, steps, delta):\n"
        "    return gaussian_epsilon(math.sqrt(steps) / noise_multiplier, delta)\n"
        "def wrong(noise_multiplier, sampling_rate, steps, delta):\n"
        "    return gaussian_epsilon(1.0 / noise_multiplier, delta)\n"
        "def never(composition, delta):\n"
        "    raise NotImplementedError\n"
    )

    def run(*words):
        out = io.StringIO()
        return cli.main(["accountant", *words, "--unsampled", "--examples", "30"], stdout=out), out.getvalue()

    code, text = run("mine.py:right")
    assert (code, text.startswith("NO_VIOLATION_FOUND  accountant mine.py:right under add-remove")) == (0, True)
    code, text = run("mine.py:wrong")
    assert code == 1
    assert "understates: reports epsilon" in text
    assert run("mine.py:never")[0] == 3
    code, text = run("mine.py:wrong", "--json", "--relation", "substitute")
    document = json.loads(text)
    assert (code, document["verdict"], document["relation"]) == (1, "VIOLATION", "substitute")
    assert document["findings"][0]["truth"][0] > document["findings"][0]["reported"]
    assert run("mine.py:absent")[0] == 2


def test_the_gaussian_quantile_is_the_one_used():
    # delta of N(0, 1) against N(1, 1) at epsilon 1, by the normal distribution function.
    assert gaussian_epsilon(1.0, float(ndtr(-0.5) - math.e * ndtr(-1.5))) == pytest.approx(1.0, rel=1e-9)
