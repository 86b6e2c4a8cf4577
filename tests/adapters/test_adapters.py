"""Adapters: on small objects with the interface of each library, and on the libraries themselves where installed.

Audits of sound mechanisms run at alpha 1e-6, their declared false alarm probability.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit import ApproxDP, GaussianDP, ProfileDP, PureDP, Relation, RenyiDP, Verdict, ZeroConcentratedDP
from dpaudit.adapters import accounting, diffprivlib, estimators, frames, opendp
from dpaudit.adapters._loading import load
from dpaudit.errors import InvalidArgument, MechanismError, MissingDependency


def needs(library: str, extra: str = "libraries") -> Any:
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f"{library} is not installed: pip install 'dpaudit[{extra}]'")


def test_importing_adapters_imports_no_library():
    libraries = ["opendp", "diffprivlib", "sklearn", "dp_accounting", "pandas", "flwr"]
    program = (
        "import sys; from dpaudit.adapters import accounting, diffprivlib, estimators, flower, frames, opendp; "
        f"print([name for name in {libraries!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_missing_library_is_named_with_its_extra():
    with pytest.raises(MissingDependency, match=r"pip install 'dpaudit\[libraries\]'"):
        load("no_such_library.prelude", extra="libraries")


# OpenDP.


@dataclass
class Measurement:
    """The attributes of an OpenDP measurement that the adapter reads."""

    input_metric: str = "SymmetricDistance()"
    output_measure: str = "MaxDivergence"
    privacy: Any = field(default=lambda distance: 0.5 * distance)
    input_domain: str = "VectorDomain(AtomDomain(T=f64))"

    def map(self, distance: Any) -> Any:
        return self.privacy(distance)

    def __call__(self, data: Any) -> Any:
        assert type(data) is not np.ndarray
        return float(np.sum(data)) + float(np.random.laplace())  # noqa: NPY002 - has randomness of its own


@pytest.mark.parametrize(
    ("metric", "relation", "expected"),
    [
        ("SymmetricDistance()", Relation.ADD_REMOVE, 0.5),
        ("SymmetricDistance()", Relation.SUBSTITUTE, 1.0),
        ("InsertDeleteDistance()", Relation.SUBSTITUTE, 1.0),
        ("ChangeOneDistance()", Relation.SUBSTITUTE, 0.5),
        ("DiscreteDistance()", Relation.SUBSTITUTE, 0.5),
    ],
)
def test_the_map_is_read_at_the_distance_of_the_relation(metric, relation, expected):
    assert opendp.claim(Measurement(metric), relation) == PureDP(expected, relation)


@pytest.mark.parametrize(
    ("measure", "privacy", "options", "expected"),
    [
        ("ZeroConcentratedDivergence", lambda d: 0.25 * d, {}, ZeroConcentratedDP(0.25, Relation.ADD_REMOVE)),
        ("Approximate(MaxDivergence)", lambda d: (1.5, 1e-6), {}, ApproxDP(1.5, 1e-6, Relation.ADD_REMOVE)),
        ("FixedSmoothedMaxDivergence(f64)", lambda d: (1.5, 0.0), {}, PureDP(1.5, Relation.ADD_REMOVE)),
        (
            "SmoothedMaxDivergence",
            lambda d: SimpleNamespace(epsilon=lambda delta: 100.0 * delta),
            {"delta": 0.01},
            ApproxDP(1.0, 0.01, Relation.ADD_REMOVE),
        ),
        (
            "RenyiDivergence",
            lambda d: lambda order: order / 4.0,
            {"order": 8.0},
            RenyiDP(8.0, 2.0, Relation.ADD_REMOVE),
        ),
    ],
    ids=["zCDP", "approximate", "fixed", "profile", "Renyi"],
)
def test_measures_become_claims(measure, privacy, options, expected):
    assert (
        opendp.claim(Measurement("SymmetricDistance()", measure, privacy), Relation.ADD_REMOVE, **options) == expected
    )


@pytest.mark.parametrize(
    ("measurement", "relation", "message"),
    [
        (Measurement("AbsoluteDistance(f64)"), Relation.ANSWERS, "distance=None must be given"),
        (Measurement("ChangeOneDistance()"), Relation.ADD_REMOVE, "has no distance in the metric"),
        (Measurement(output_measure="SmoothedMaxDivergence"), Relation.ADD_REMOVE, "delta=None must be given"),
        (Measurement(output_measure="RenyiDivergence"), Relation.ADD_REMOVE, "order=None must be given"),
        (Measurement(output_measure="UserDivergence(x)"), Relation.ADD_REMOVE, "has no claim here"),
        (Measurement(privacy=lambda d: 0.0), Relation.ADD_REMOVE, "cannot be distinguished"),
        (
            Measurement(input_domain="VectorDomain(AtomDomain(T=f64), size=10)"),
            Relation.ADD_REMOVE,
            "leaves the domain",
        ),
    ],
    ids=["distance", "relation", "delta", "order", "measure", "zero", "size"],
)
def test_missing_information_of_a_measurement_is_requested(measurement, relation, message):
    with pytest.raises(InvalidArgument, match=message):
        opendp.claim(measurement, relation)


def test_a_stated_profile_is_a_claim():
    stated = SimpleNamespace(delta=lambda epsilon: 0.25 / (1.0 + epsilon), epsilon=lambda delta: 1.0)
    measurement = Measurement("SymmetricDistance()", "SmoothedMaxDivergence", lambda distance: stated)
    claim = opendp.profile(measurement, Relation.ADD_REMOVE, epsilons=[0.0, 1.0])
    assert claim == ProfileDP([(0.0, 0.250001), (1.0, 0.125001)], Relation.ADD_REMOVE)
    with pytest.raises(InvalidArgument, match="states no privacy profile"):
        opendp.profile(Measurement("SymmetricDistance()"), Relation.ADD_REMOVE)


def test_a_measurement_is_a_mechanism_on_native_data():
    measurement = Measurement("AbsoluteDistance(f64)", privacy=lambda distance: distance)
    mechanism = opendp.mechanism(measurement)
    claim = opendp.claim(measurement, Relation.ANSWERS, distance=1.0)
    outputs = mechanism.sample(np.array([1.0, 2.0]), 3, np.random.default_rng(0))
    assert len(outputs) == 3
    result = dpaudit.audit(mechanism, PureDP(0.5), [(np.zeros(1), np.ones(1))], samples=20_000, shrink=False)
    assert result.verdict is Verdict.VIOLATION  # its epsilon is 1
    assert claim == PureDP(1.0, Relation.ANSWERS)
    with pytest.raises(InvalidArgument, match="must be an OpenDP measurement"):
        opendp.mechanism(3)


@needs("opendp")
class TestOpenDP:
    @pytest.mark.parametrize("channel", ["value", "representation"])
    def test_laplace_is_not_refuted(self, channel):
        dp = opendp.prelude()
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        measurement = space >> dp.m.then_laplace(scale=1.0)
        claim = opendp.claim(measurement, Relation.ANSWERS, distance=1.0)
        assert claim == PureDP(1.0, Relation.ANSWERS)
        result = dpaudit.audit(opendp.mechanism(measurement), claim, [(0.0, 1.0)], samples=60_000, channel=channel)
        assert result.verdict is Verdict.NO_VIOLATION_FOUND
        assert result.epsilon_lower > 0.7

    def test_claims_of_the_library(self):
        dp = opendp.prelude()
        rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        count = rows >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
        assert opendp.claim(count, Relation.ADD_REMOVE) == PureDP(0.5, Relation.ADD_REMOVE)
        assert opendp.claim(count, Relation.SUBSTITUTE) == PureDP(1.0, Relation.SUBSTITUTE)
        number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        gaussian = number >> dp.m.then_gaussian(scale=1.0)
        assert opendp.claim(gaussian, Relation.ANSWERS, distance=1.0) == ZeroConcentratedDP(0.5, Relation.ANSWERS)
        profile = dp.c.make_zCDP_to_approxDP(gaussian)
        at_delta = opendp.claim(profile, Relation.ANSWERS, distance=1.0, delta=1e-6)
        fixed = dp.c.make_fix_delta(profile, 1e-6)
        assert opendp.claim(fixed, Relation.ANSWERS, distance=1.0) == at_delta

    def test_a_fixed_size_is_not_left_and_a_transformation_is_no_measurement(self):
        dp = opendp.prelude()
        ten = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=10), dp.symmetric_distance()
        mean = ten >> dp.t.then_mean()
        noisy = mean >> dp.m.then_laplace(scale=0.1)
        assert opendp.claim(noisy, Relation.SUBSTITUTE).parameter == pytest.approx(1.0)
        with pytest.raises(InvalidArgument, match="leaves the domain"):
            opendp.claim(noisy, Relation.ADD_REMOVE)
        with pytest.raises(InvalidArgument, match="adds no noise"):
            opendp.mechanism(mean)

    def test_the_map_under_substitution_is_caught_if_misread(self):
        # A histogram count read at map(1) is false for substitution: two bins move.
        dp = opendp.prelude()
        bins = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        counts = (
            bins
            >> dp.t.then_count_by_categories(categories=[0, 1], null_category=False)
            >> dp.m.then_laplace(scale=1.0)
        )
        pair = [([0], [1])]
        wrong = PureDP(opendp.claim(counts, Relation.ADD_REMOVE).parameter, Relation.SUBSTITUTE)
        where = dpaudit.neighbours.fixed(pair, relation=Relation.SUBSTITUTE)
        mechanism = opendp.mechanism(counts)
        assert dpaudit.audit(mechanism, wrong, where, samples=20_000, shrink=False).verdict is Verdict.VIOLATION
        right = opendp.claim(counts, Relation.SUBSTITUTE)
        assert dpaudit.audit(mechanism, right, where, samples=20_000).verdict is not Verdict.VIOLATION


# diffprivlib.


@dataclass
class Perturb:
    """The attributes of a mechanism of diffprivlib that the adapter reads."""

    epsilon: float = 1.0
    delta: float = 0.0

    def randomise(self, value: float) -> float:
        return value + float(np.random.laplace(scale=1.0 / self.epsilon))  # noqa: NPY002


def noisy_mean(array: Any, epsilon: float = 1.0, bounds: Any = None, random_state: Any = None) -> float:
    low, high = bounds
    scale = (high - low) / (epsilon * len(array))
    return float(np.mean(np.clip(array, low, high)) + np.random.laplace(scale=scale))  # noqa: NPY002


def test_diffprivlib_claims():
    assert diffprivlib.claim(Perturb(0.5), Relation.ANSWERS) == PureDP(0.5, Relation.ANSWERS)
    assert diffprivlib.claim(Perturb(0.5, 1e-5)) == ApproxDP(0.5, 1e-5)
    assert diffprivlib.claim(Perturb(0.0, 0.5)) == ApproxDP(0.0, 0.5)
    assert diffprivlib.claim(noisy_mean, bounds=(0, 1)) == PureDP(1.0)
    with pytest.raises(InvalidArgument, match=r"states no epsilon; state the claim yourself"):
        diffprivlib.claim(object())
    with pytest.raises(InvalidArgument, match=r"states no epsilon; pass epsilon=, or"):
        diffprivlib.claim(len)
    with pytest.raises(InvalidArgument, match=r"Perturb'> is a class; pass an instance of it"):
        diffprivlib.claim(Perturb)
    with pytest.raises(InvalidArgument, match="epsilon can be given for functions only"):
        diffprivlib.claim(Perturb(2.0), epsilon=0.5)


def test_a_perturbation_and_a_tool_are_mechanisms():
    rng = np.random.default_rng(0)
    assert len(diffprivlib.mechanism(Perturb(), query=len).sample([1, 2], 3, rng)) == 3
    mean = diffprivlib.tool(noisy_mean, bounds=(0.0, 1.0), epsilon=2.0)
    outputs = mean.sample(np.array([0.25, 0.75] * 50), 5, rng)
    assert np.abs(np.array(outputs) - 0.5).max() < 0.2
    result = dpaudit.audit(diffprivlib.mechanism(Perturb(2.0)), PureDP(1.0), [(0.0, 1.0)], samples=20_000, shrink=False)
    assert result.verdict is Verdict.VIOLATION
    with pytest.raises(InvalidArgument, match="randomise"):
        diffprivlib.mechanism(Perturb)


@needs("diffprivlib")
@pytest.mark.filterwarnings("ignore")
class TestDiffprivlib:
    @pytest.fixture
    def library(self):
        try:
            return load("diffprivlib", extra="libraries")
        except MissingDependency as error:
            pytest.skip(f"diffprivlib does not import with the scikit-learn that is installed: {error}")

    @pytest.mark.parametrize(
        ("name", "arguments", "answers"),
        [
            ("Laplace", {"epsilon": 1.0, "sensitivity": 1.0}, (0.0, 1.0)),
            ("Geometric", {"epsilon": 1.0, "sensitivity": 1}, (0, 1)),
            ("Snapping", {"epsilon": 1.0, "sensitivity": 1.0, "lower": -10.0, "upper": 10.0}, (0.0, 1.0)),
            ("GaussianAnalytic", {"epsilon": 1.0, "delta": 0.01, "sensitivity": 1.0}, (0.0, 1.0)),
        ],
    )
    def test_values_are_not_refuted(self, library, name, arguments, answers):
        perturb = getattr(library.mechanisms, name)(**arguments)
        claim = diffprivlib.claim(perturb, Relation.ANSWERS)
        result = dpaudit.audit(diffprivlib.mechanism(perturb), claim, [answers], samples=20_000, shrink=False)
        assert result.verdict is not Verdict.VIOLATION

    def test_a_tool_and_a_model(self, library):
        mean = diffprivlib.tool(library.tools.mean, epsilon=1.0, bounds=(0.0, 1.0))
        claim = diffprivlib.claim(library.tools.mean, Relation.SUBSTITUTE, epsilon=1.0)
        data, neighbour = np.array([0.0, 0.0]), np.array([0.0, 1.0])
        where = dpaudit.neighbours.fixed([(data, neighbour)], relation=Relation.SUBSTITUTE)
        assert dpaudit.audit(mean, claim, where, samples=10_000, shrink=False).verdict is not Verdict.VIOLATION

        def make():
            return library.models.StandardScaler(epsilon=1.0, bounds=(0.0, 1.0), accountant=library.BudgetAccountant())

        outputs = diffprivlib.model(make, attributes=["mean_", "var_"]).sample(
            np.array([[0.1], [0.9]]), 2, np.random.default_rng(0)
        )
        assert [{name: value.shape for name, value in output.items()} for output in outputs] == [
            {"mean_": (1,), "var_": (1,)}
        ] * 2

    def test_a_forest_without_noise_is_refuted_by_its_trees(self, library):
        def make():
            return library.models.RandomForestClassifier(
                n_estimators=1,
                max_depth=1,
                epsilon=1e6,
                bounds=(0.0, 1.0),
                classes=[0, 1],
                accountant=library.BudgetAccountant(),
            )

        where = dpaudit.neighbours.fixed([([[0.0, 0.0]], [[0.0, 1.0]])], relation=Relation.SUBSTITUTE)
        with pytest.raises(MechanismError, match=r"estimators_"):
            dpaudit.audit(diffprivlib.model(make, target=True), PureDP(0.5), where, samples=2000)
        trees = diffprivlib.model(make, attributes="estimators_", target=True)
        result = dpaudit.audit(trees, PureDP(0.5), where, samples=2000, shrink=False)
        assert result.verdict is Verdict.VIOLATION

    def test_clusters_are_released_by_name(self, library):
        def make():
            return library.models.KMeans(
                n_clusters=1, epsilon=1.0, bounds=(0.0, 1.0), accountant=library.BudgetAccountant()
            )

        where = dpaudit.neighbours.fixed([([[0.0], [0.0]], [[0.0], [1.0]])], relation=Relation.SUBSTITUTE)
        with pytest.raises(MechanismError, match=r"Fitted are: cluster_centers_, inertia_, labels_"):
            dpaudit.audit(diffprivlib.model(make), PureDP(1.0), where, samples=2000)
        centres = diffprivlib.model(make, attributes=["cluster_centers_"])
        result = dpaudit.audit(centres, PureDP(1.0), where, samples=2000, shrink=False)
        assert result.verdict is not Verdict.VIOLATION


# Estimators.


class Averages:
    """Fits the mean of the features, and of the targets if there are any."""

    def fit(self, X: Any, y: Any = None) -> Averages:
        X -= 0.0  # in place, as careless code does
        self.coef_ = X.mean(axis=0)
        self.intercept_ = 0.0 if y is None else float(np.mean(y))
        self.n_seen_ = len(X)
        return self


def released(source: Any, data: Any, **options: Any) -> Any:
    (output,) = estimators.mechanism(source, **options).sample(data, 1, np.random.default_rng(0))
    return {name: np.asarray(value).tolist() for name, value in output.items()} if type(output) is dict else output


def test_the_output_is_the_fitted_attributes():
    rows = np.array([[1.0, 2.0, 10.0], [3.0, 4.0, 20.0]])
    assert released(Averages, rows) == {"coef_": [2.0, 3.0, 15.0], "intercept_": 0.0}
    assert released(Averages, rows, target=True) == {"coef_": [2.0, 3.0], "intercept_": 15.0}
    assert released(Averages, (rows[:, :2], rows[:, 2])) == {"coef_": [2.0, 3.0], "intercept_": 15.0}
    assert released(Averages, rows, attributes="n_seen_") == {"n_seen_": 2}
    assert released(Averages, [1.0, 2.0, 3.0], attributes=lambda e: e.n_seen_) == 3
    with pytest.raises(InvalidArgument, match="must be a function that makes"):
        estimators.mechanism(Averages())
    with pytest.raises(InvalidArgument, match="must be a function that makes"):
        diffprivlib.model(Averages())


class Vocabulary:
    """Learns words: nothing of it is a number."""

    def fit(self, X: Any) -> Vocabulary:
        self.words_ = [str(word) for word in np.unique(X)]
        self.index_ = Index(self.words_)
        self.n_features_in_ = 1
        return self


class Index:
    """Shows what it holds only to who pickles it, as compiled types do."""

    __slots__ = ("__words__",)  # names like this one are not looked at

    def __init__(self, words: Any) -> None:
        self.__words__ = words

    def __getstate__(self) -> Any:
        return {"words": self.__words__}

    def __setstate__(self, state: Any) -> None:
        self.__words__ = state["words"]


@pytest.mark.parametrize("attribute", ["words_", "index_"])
def test_an_attribute_that_is_no_number_is_released_as_it_is(attribute):
    mechanism = estimators.mechanism(Vocabulary, attributes=attribute)
    result = dpaudit.audit(mechanism, PureDP(1.0), [(["a", "b"], ["a", "c"])], samples=2000)
    assert result.verdict is Verdict.VIOLATION
    assert attribute in str(result)


@pytest.mark.parametrize(
    ("make", "attributes", "message"),
    [
        (Vocabulary, None, r"Vocabulary has no coef_, .*; pass attributes=.*: index_, n_features_in_, words_\."),
        (Vocabulary, ["words_", "wrods_"], r"has no fitted attribute wrods_; .*: index_, n_features_in_, words_\."),
        (Vocabulary, [], r"pass attributes="),
        (object, None, "has no method fit"),
    ],
)
def test_a_missing_attribute_is_an_error_not_an_output(make, attributes, message):
    with pytest.raises(MechanismError, match=message):
        dpaudit.audit(estimators.mechanism(make, attributes=attributes), PureDP(1.0), [(["a"], ["b"])], samples=100)


def test_an_event_names_the_attribute():
    mechanism = estimators.mechanism(Averages, attributes=["coef_", "n_seen_"])
    result = dpaudit.audit(mechanism, PureDP(1.0), [([[0.0]], [[1.0]])], samples=2000)
    assert "coef_" in result.witness.event


def test_an_exact_fit_is_refuted():
    where = dpaudit.neighbours.fixed([([[0.0]], [[1.0]])], relation=Relation.SUBSTITUTE)
    result = dpaudit.audit(estimators.mechanism(Averages), PureDP(1.0), where, samples=2000)
    assert result.verdict is Verdict.VIOLATION


@needs("sklearn", "learn")
def test_scikit_learn_estimators():
    from sklearn.linear_model import LinearRegression

    rows = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])
    output = released(LinearRegression, rows, target=True)
    assert output == {"coef_": pytest.approx([2.0]), "intercept_": pytest.approx(1.0)}


# Frames.


def test_a_function_of_frames():
    def spoil(frame: pd.DataFrame, rng: np.random.Generator) -> float:
        frame["age"] = 0  # must not reach the next release
        return float(len(frame) + rng.laplace())

    mechanism = frames.mechanism(spoil, columns=["age", "city"], dtypes=["int64", "object"], uses_rng=True)
    rows = [(30, "a"), (40, "b")]
    assert len(mechanism.sample(rows, 3, np.random.default_rng(0))) == 3
    frame = pd.DataFrame(rows, columns=["age", "city"])
    mechanism.sample(frame, 3, np.random.default_rng(0))
    assert frame["age"].tolist() == [30, 40]
    means = frames.mechanism(
        lambda frame: frame.groupby("city")["age"].mean(), columns=["age", "city"], dtypes=["int64", "object"]
    )
    assert means.sample(rows, 1, np.random.default_rng(0)) == [{"a": 30.0, "b": 40.0}]
    with pytest.raises(InvalidArgument, match="given together"):
        frames.mechanism(len, columns=["age"])
    raised = frames.mechanism(len).sample(rows, 1, np.random.default_rng(0))[0]
    assert raised.type.endswith("InvalidArgument")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pd.Series([1, 2], index=["a", "a"]), pd.Series([1, 2], index=["b", "b"])),
        (pd.Series([1, 2]), pd.Series([1, 2], index=pd.RangeIndex(5, 7))),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), pd.DataFrame([[7, 2]], columns=["a", "a"])),
        (pd.DataFrame({1: [1], "1": [2]}), pd.DataFrame({1: [7], "1": [2]})),
    ],
    ids=["labels twice", "offset", "columns twice", "names alike"],
)
def test_nothing_of_a_frame_gets_lost(first, second):
    assert frames.released(first) != frames.released(second)
    assert frames.released(first) == frames.released(first.copy())


def test_group_labels_are_part_of_the_output():
    def noisy_groups(frame: pd.DataFrame) -> Any:
        return frame.groupby("city").size() + np.random.laplace(scale=100.0)  # noqa: NPY002

    mechanism = frames.mechanism(noisy_groups, columns=["city"], dtypes=["object"])
    where = dpaudit.neighbours.fixed([(["a"], ["a", "b"])], relation=Relation.ADD_REMOVE)
    assert dpaudit.audit(mechanism, PureDP(1.0), where, samples=2000, shrink=False).verdict is Verdict.VIOLATION


# dp-accounting.


@needs("dp_accounting", "accounting")
class TestAccounting:
    @pytest.fixture
    def events(self):
        return load("dp_accounting.dp_event", extra="accounting")

    def test_closed_forms(self, events):
        gaussian = events.GaussianDpEvent(noise_multiplier=2.0)
        assert accounting.claim(gaussian) == GaussianDP(0.5, Relation.ADD_REMOVE)
        assert accounting.claim(gaussian, Relation.SUBSTITUTE) == GaussianDP(1.0, Relation.SUBSTITUTE)
        curve = accounting.profile(gaussian, epsilons=[0.0, 1.0])
        assert [delta for _, delta in curve.points] == pytest.approx(
            [GaussianDP(0.5).delta(0.0), GaussianDP(0.5).delta(1.0)], rel=1e-3
        )
        assert GaussianDP(0.5, Relation.ADD_REMOVE).is_at_least_as_strong_as(curve)
        with pytest.raises(InvalidArgument, match="is not supported by PLDAccountant"):
            accounting.profile(events.ZCDpEvent(0.1))
        assert accounting.claim(events.LaplaceDpEvent(0.5)) == PureDP(2.0, Relation.ADD_REMOVE)
        assert accounting.claim(events.DiscreteLaplaceDpEvent(0.5, 3)) == PureDP(1.5, Relation.ADD_REMOVE)
        assert accounting.claim(events.ZCDpEvent(0.1)) == ZeroConcentratedDP(0.1, Relation.ADD_REMOVE)
        response = accounting.claim(events.RandomizedResponseDpEvent(0.5, 2), Relation.SUBSTITUTE)
        assert response.parameter == pytest.approx(math.log(3.0))

    @pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.SUBSTITUTE, Relation.ZERO_OUT])
    def test_closed_forms_agree_with_the_accountant(self, events, relation):
        gaussian = events.GaussianDpEvent(1.0)
        at_delta = accounting.claim(gaussian, relation, delta=1e-5)
        assert accounting.claim(gaussian, relation).delta(at_delta.parameter) == pytest.approx(1e-5, rel=1e-4)

    def test_composed_and_sampled_events(self, events):
        step = events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(1.0))
        claim = accounting.claim(events.SelfComposedDpEvent(step, 10), delta=1e-5)
        single = accounting.claim(step, delta=1e-5)
        assert single.parameter < claim.parameter < 10 * single.parameter
        with pytest.raises(InvalidArgument, match="delta=None must be given"):
            accounting.claim(step)
        with pytest.raises(InvalidArgument, match="promises nothing"):
            accounting.claim(events.NonPrivateDpEvent(), delta=1e-5)
        unsupported = events.SampledWithoutReplacementDpEvent(100, 10, events.GaussianDpEvent(1.0))
        with pytest.raises(InvalidArgument, match=r"leave out delta= .* or pass another accountant="):
            accounting.claim(events.LaplaceDpEvent(1.0), Relation.SUBSTITUTE, delta=1e-5)
        with pytest.raises(InvalidArgument, match="not supported"):
            accounting.claim(unsupported, delta=1e-5)
        accountant = load("dp_accounting.rdp", extra="accounting").RdpAccountant(
            neighboring_relation=load("dp_accounting", extra="accounting").NeighboringRelation.REPLACE_ONE
        )
        assert accounting.claim(unsupported, Relation.SUBSTITUTE, delta=1e-5, accountant=accountant).parameter > 0.0
