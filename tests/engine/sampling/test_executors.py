"""Executors of every kind: the same result on each, and one defined outcome for each way to lose a worker."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP, Result, Verdict
from dpaudit.cli.main import main
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.sampling import executor as task_runner
from dpaudit.engine.sampling import rounds
from dpaudit.engine.sampling.blocks import Sampler, Task, block_sizes, merge
from dpaudit.engine.sampling.executor import TaskRunner
from dpaudit.engine.sampling.processes import Workers
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.learner import Learner, Settled
from dpaudit.result.model import StoppedBy

CLAIM = PureDP(1.0)
WHERE = [(0.0, 1.0)]
SPAWN = multiprocessing.get_context("spawn")

MODULE = '''
import os
import signal
import threading
import time

import numpy as np

import dpaudit


class Waits:
    """Laplace noise that takes its time, as a call to a device does: the time of a busy machine does not count."""

    def __init__(self, scale=1.0, wait=5e-6):
        self.scale, self.wait = scale, wait
        self.home = os.getpid()

    def sample(self, data, size, rng):
        time.sleep(self.wait * size)
        self.before(size)
        return self.generator(rng).laplace(data, self.scale, size)

    def generator(self, rng):
        return rng

    def before(self, size):
        pass


class DiesOnce(Waits):
    """Kills its worker, once, in the middle of the audit."""

    def __init__(self, marker, **options):
        super().__init__(**options)
        self.marker = str(marker)

    def before(self, size):
        if os.getpid() != self.home and size > 40:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)


class OwnEntropyDiesOnce(DiesOnce):
    own = np.random.default_rng()

    def generator(self, rng):
        return self.own


class AlwaysDies(Waits):
    def before(self, size):
        if os.getpid() != self.home and size > 40:
            os._exit(3)


class Hangs(Waits):
    def before(self, size):
        if os.getpid() != self.home and size > 40:
            time.sleep(60.0)


class DependsOnItsProcess(DiesOnce):
    """Reproducible in one process, but not the same in another, like what depends on hash()."""

    def sample(self, data, size, rng):
        return super().sample(data, size, rng) + (0.0 if os.getpid() == self.home else 1e-9 * (os.getpid() % 9973))


class ChangesItsInput(Waits):
    def sample(self, data, size, rng):
        outputs = super().sample(float(len(data)), size, rng)
        if os.getpid() != self.home:
            data.append(1)
        return outputs


class Salted(Waits):
    """Words in the order of a set, which differs from process to process."""

    def sample(self, data, size, rng):
        signs = super().sample(data, size, rng) > 0.5
        return [" ".join({f"word{number}" for number in range(9)} | {str(sign)}) for sign in signs]


class LeavesThere(Waits):
    """Of a module, say, that calls sys.exit when it is imported."""

    def __setstate__(self, state):
        raise SystemExit(3)


class Complains(Waits):
    def before(self, size):
        if os.getpid() != self.home and size > 40:
            raise MemoryError("too small a machine")


class BreaksTheProtocol(Waits):
    """With an error that holds something that cannot be sent."""

    def before(self, size):
        if os.getpid() != self.home and size > 40:
            error = dpaudit.MechanismError("the device gave no answer")
            error.device = threading.Lock()
            raise error
'''


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A module that workers can import, because they inherit the path."""
    folder = tmp_path_factory.mktemp("importable")
    (folder / "audited_there.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    yield __import__("audited_there")
    sys.path.remove(str(folder))
    sys.modules.pop("audited_there", None)


@pytest.fixture(scope="module")
def workers(there: Any) -> Iterator[Workers]:
    with Workers(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def dask(there: Any) -> Iterator[Executor]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dpaudit[dask]'")
    quick = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.profile.enabled": False}
    with (
        pytest.MonkeyPatch.context() as patch,
        __import__("dask").config.set(quick),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": ":0"},  # any port: another cluster may have the usual one
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        patch.setattr(task_runner, "WORTH_SENDING_FAR", task_runner.WORTH_SENDING)  # so that small audits are sent
        yield client.get_executor(pure=False)


def audit(mechanism: Any, where: Any = WHERE, **options: Any) -> Result:
    return dpaudit.audit(mechanism, CLAIM, where, **{"samples": 20_000, "seed": 3, "detect_factor": 3.0, **options})


def plain(result: Result) -> dict[str, Any]:
    found = result.to_dict()
    del found["seconds"]
    return found


class Shuffled(Executor):
    """Threads whose tasks finish in another order than they were sent in."""

    def __init__(self) -> None:
        self._max_workers = 4
        self._threads = ThreadPoolExecutor(8)
        self._sent = 0
        self.finished: list[int] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        number = self._sent
        self._sent += 1

        def late() -> Any:
            answer = fn(*args, **kwargs)
            time.sleep(0.004 * (3 - number % 4))
            self.finished.append(number)
            return answer

        return self._threads.submit(late)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait)


# The same answer

AUDITS: dict[str, Callable[[Any], Result]] = {
    "violation": lambda run: run((0.8, 1e-5), WHERE),
    "nothing found": lambda run: run((1.0, 5e-6), [(0.0, 1.0), (5.0, 4.0)]),
}


@pytest.mark.parametrize("name", AUDITS)
def test_results_do_not_depend_on_the_process_that_draws(
    name: str, there: Any, workers: Workers, dask: Executor
) -> None:
    def with_executor(executor: Executor | None) -> dict[str, Any]:
        return plain(AUDITS[name](lambda noise, where: audit(there.Waits(*noise), where, executor=executor)))

    alone = with_executor(None)
    assert alone["reproducible"]
    with Shuffled() as shuffled, ThreadPoolExecutor(1) as one, ThreadPoolExecutor(8) as eight:
        for executor in (one, eight, shuffled, workers, dask):
            assert with_executor(executor) == alone, executor
        assert shuffled.finished != sorted(shuffled.finished)
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        assert with_executor(pool) == alone


def test_tasks_are_cut_by_the_clock_but_blocks_are_not() -> None:
    sizes = [100] * 37
    for count in (1, 2, 8, 50):
        for seconds in (0.0, 0.02, 1.0, 300.0):
            parts = rounds.cut(sizes, count, seconds, 0.005)
            assert [first for first, _ in parts] == list(np.cumsum([0, *(len(part) for _, part in parts[:-1])]))
            assert [size for _, part in parts for size in part] == sizes
            assert max(len(part) for _, part in parts) - min(len(part) for _, part in parts) <= 1


def test_a_cluster_on_the_command_line(
    dask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits" / "far.py").write_text(
        "import time\nimport dpaudit\n\ndef only_here(data, size, rng):\n    time.sleep(5e-6 * size)\n"
        "    return rng.laplace(data, size=size)\n\n"
        "OPTIONS = dict(claim=dpaudit.PureDP(1.0), neighbours=[(0.0, 1.0)], options={'samples': 20_000, 'detect_factor': 3.0})\n"
        "named = dpaudit.Audit(name='named', mechanism='audited_there:Waits', **OPTIONS)\n"
        "local = dpaudit.Audit(name='local', mechanism=dpaudit.batched(only_here), **OPTIONS)\n"
    )
    out = io.StringIO()
    code = main(["run", "--executor", f"dask:{dask._client.scheduler.address}", "--json"], stdout=out)
    found = {audit["result"]["name"]: audit["result"] for audit in json.loads(out.getvalue())["audits"]}
    alone = plain(
        dpaudit.audit(
            "audited_there:Waits", CLAIM, WHERE, name="named", samples=20_000, detect_factor=3.0, alpha=1e-6 / 1000
        )
    )
    found["named"].pop("seconds")
    assert found["named"] == json.loads(json.dumps(alone))
    assert code == 2
    assert list(found) == ["named"]
    assert re.search(
        r"local: The mechanism or its data cannot be sent.*audits\.far.*package\.module:factory",
        capsys.readouterr().err,
    )


# What does not travel


def waits(data: float) -> float:
    time.sleep(2e-5)
    return data + float(np.random.laplace())  # noqa: NPY002


class Locked:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, data: float) -> float:
        return waits(data)


@pytest.mark.parametrize("mechanism", [lambda data: waits(data), Locked()], ids=["lambda", "lock"])
def test_a_mechanism_that_cannot_be_pickled_is_refused(mechanism: Any, workers: Workers) -> None:
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        for executor in (workers, pool):
            with pytest.raises(dpaudit.InvalidArgument, match=r"notebook.*package\.module:factory.*loky"):
                audit(mechanism, executor=executor, samples=6000)


def test_mechanisms_defined_in_a_notebook(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It pickles, by its name in ``__main__``, and cannot be rebuilt there."""

    def typed_in(data: float) -> float:
        return waits(data)

    typed_in.__module__, typed_in.__qualname__ = "__main__", "typed_in"
    monkeypatch.setattr(sys.modules["__main__"], "typed_in", typed_in, raising=False)
    pickle.dumps(typed_in)
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        for executor in (workers, pool):
            with pytest.raises(dpaudit.InvalidArgument, match=r"typed_in.*notebook"):
                audit(typed_in, executor=executor, samples=6000)


def test_executors_that_pickle_by_value_take_lambdas(dask: Executor) -> None:
    pytest.importorskip("distributed")

    def typed_in(data: float, size: int, rng: np.random.Generator) -> Any:
        time.sleep(5e-6 * size)
        return rng.laplace(data, size=size)

    typed_in.__module__ = "__main__"
    mechanism = dpaudit.batched(typed_in)
    assert plain(audit(mechanism, executor=dask)) == plain(audit(mechanism))


def test_an_executor_that_was_shut_down(there: Any) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(dpaudit.InvalidArgument, match=r"executor=.*accepts no more tasks"):
        audit(there.Waits(), executor=pool)


def test_an_exit_during_unpickling_does_not_end_the_audit(there: Any, workers: Workers) -> None:
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        for executor in (workers, pool):
            with pytest.raises(dpaudit.InvalidArgument, match=r"cannot be sent.*SystemExit: 3"):
                audit(there.LeavesThere(), executor=executor)


def test_draws_that_differ_between_processes_are_reported(there: Any, workers: Workers) -> None:
    result = audit(there.Salted(), executor=workers, detect_factor=1e6)
    assert not result.reproducible
    assert any("PYTHONHASHSEED" in message for message in result.messages)
    assert not any("dpaudit.fresh" in message for message in result.messages)
    assert audit(there.Salted()).reproducible


# Lost workers


class ClosesEarly(ThreadPoolExecutor):
    """Takes some tasks, and no more."""

    def __init__(self, error: Exception) -> None:
        super().__init__(2)
        self.left, self.error = 6, error

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return super().submit(fn, *args, **kwargs)


@pytest.mark.parametrize("error", [RuntimeError("cannot schedule new futures after shutdown"), ConnectionError("gone")])
def test_an_executor_that_closes_during_a_run_keeps_the_settled_rounds(there: Any, error: Exception) -> None:
    with ClosesEarly(error) as executor:
        result = audit(there.Waits(), executor=executor)
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.LOST_WORKER)
    assert result.samples > 0
    assert any(str(error) in message for message in result.messages)


def test_processes_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit neither waits for ever nor blames the mechanism."""
    with (
        Workers(1, initializer=divmod, initargs=(1, 0)) as dies,
        pytest.raises(BrokenExecutor, match=r"exit code 1 while it started.*__main__"),
    ):
        dies.submit(pow, 2, 5).result(timeout=30.0)

    def refuse(*_: Any) -> Any:
        raise RuntimeError("An attempt has been made to start a new process too early.")

    monkeypatch.setattr(Workers, "_start", refuse)
    with Workers(1) as never, pytest.raises(BrokenExecutor, match="could not be started: An attempt"):
        never.submit(pow, 2, 5).result(timeout=30.0)


@contextlib.contextmanager
def of_kind(kind: str, request: pytest.FixtureRequest) -> Iterator[Executor]:
    if kind == "standard pool":
        with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
            yield pool
    else:
        yield request.getfixturevalue(kind)


@pytest.mark.parametrize("kind", ["workers", "standard pool", "dask"])
def test_a_killed_worker_changes_nothing_where_draws_can_be_repeated(
    kind: str, there: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    undisturbed = plain(audit(there.Waits(), name="same"))
    marker = tmp_path / "died"
    with of_kind(kind, request) as executor:
        disturbed = plain(audit(there.DiesOnce(marker), executor=executor, name="same"))
    assert marker.exists()
    assert disturbed == undisturbed


@pytest.mark.parametrize("kind", ["workers", "standard pool", "dask"])
def test_a_killed_worker_ends_the_audit_where_draws_cannot_be_repeated(
    kind: str, there: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    marker = tmp_path / "died"
    with of_kind(kind, request) as executor:
        result = audit(there.OwnEntropyDiesOnce(marker), executor=executor)
    assert marker.exists()
    assert not result.reproducible
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.LOST_WORKER)
    assert 0 < result.samples < 20_000  # what was settled before stays
    assert any("A worker was lost" in message for message in result.messages)


@pytest.mark.parametrize("by_value", [True, False])
def test_a_lambda_works_after_its_pool_was_replaced_by_ours(
    by_value: bool, there: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loky = pytest.importorskip("joblib.externals.loky", reason="joblib is not installed")

    def missing(name: str) -> Any:
        raise ImportError(name)

    quiet, deadly = there.Waits(), there.DiesOnce(tmp_path / "died")
    undisturbed = plain(audit(dpaudit.batched(lambda *call: quiet.sample(*call)), name="same"))
    if not by_value:
        monkeypatch.setattr(task_runner, "importlib", types.SimpleNamespace(import_module=missing))
    with loky.ProcessPoolExecutor(2) as pool:
        result = audit(dpaudit.batched(lambda *call: deadly.sample(*call)), executor=pool, name="same")
    assert (tmp_path / "died").exists()
    if by_value:
        assert plain(result) == undisturbed
    else:
        assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.LOST_WORKER)
        assert any("cannot be sent to new processes" in message for message in result.messages)


def test_only_the_cause_of_a_lost_worker_is_reported(there: Any, tmp_path: Path) -> None:
    loky = pytest.importorskip("joblib.externals.loky", reason="joblib is not installed")
    with loky.ProcessPoolExecutor(2) as pool:
        result = audit(there.OwnEntropyDiesOnce(tmp_path / "died"), executor=pool)
    assert result.stopped_by is StoppedBy.LOST_WORKER
    (message,) = [message for message in result.messages if "A worker was lost" in message]
    assert re.match(
        r"A worker was lost \(A worker process managed by the executor was unexpectedly terminated; ", message
    )
    assert "\n" not in message


def test_draws_that_differ_from_process_to_process_are_not_repeated(
    there: Any, workers: Workers, tmp_path: Path
) -> None:
    result = audit(there.DependsOnItsProcess(tmp_path / "died"), executor=workers)
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.LOST_WORKER)


def test_a_mechanism_that_always_kills_its_worker(there: Any) -> None:
    with Workers(1) as worker:
        result = audit(there.AlwaysDies(), executor=worker)
        assert worker.submit(pow, 2, 5).result() == 32  # the next audit goes on
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.LOST_WORKER)
    assert any("exit code 3" in message and "3 in total" in message for message in result.messages)


def test_a_mechanism_that_always_kills_its_worker_on_a_cluster(there: Any, dask: Executor) -> None:
    result = audit(there.AlwaysDies(), executor=dask)
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.LOST_WORKER)
    assert any("all those workers died" in message for message in result.messages)


def test_a_mechanism_that_hangs_in_a_worker(there: Any, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    # However busy the machine, a task that was sent is overdue when the time is up.
    monkeypatch.setattr(rounds, "LIMITS", replace(rounds.LIMITS, overdue=0.0, shortest_overdue=0.0))
    result = audit(there.Hangs(), executor=workers, timeout=1e-3)
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, StoppedBy.TIMEOUT)
    result = audit(there.Hangs(), executor=workers, seconds=2.0)
    assert result.stopped_by is StoppedBy.SECONDS
    assert any("had not answered" in message and "timeout=" in message for message in result.messages)
    assert workers.submit(pow, 2, 5).result(timeout=50.0) == 32  # the processes that hang were ended


def test_a_task_that_raises(there: Any, workers: Workers) -> None:
    """Raising is an outcome: the audit goes on one release at a time, as it does without workers."""
    result = audit(there.Complains(), executor=workers)
    assert any("MemoryError: too small a machine" in message for message in result.messages)
    with pytest.raises(ZeroDivisionError) as caught:
        workers.submit(divmod, 1, 0).result()
    assert "In the worker process" in "".join(caught.value.__notes__)
    with pytest.raises(Exception, match="result cannot be pickled"):
        workers.submit(threading.Lock).result()


def test_an_error_that_cannot_be_sent_keeps_its_message(there: Any, workers: Workers) -> None:
    with pytest.raises(dpaudit.MechanismError, match="the device gave no answer"):
        audit(there.BreaksTheProtocol(), executor=workers)


def test_changing_the_input_there_is_refused_too(there: Any, workers: Workers) -> None:
    with pytest.raises(dpaudit.MechanismError, match="changed its input"):
        audit(there.ChangesItsInput(), [([], [1])], executor=workers)


# Never more than a few tasks at once


class Counting(Executor):
    """Two threads; the first task ends last. Counts what is in flight, and what was sent before the first one ended."""

    def __init__(self) -> None:
        self._max_workers = 2
        self._threads = ThreadPoolExecutor(2)
        self._lock = threading.Lock()
        self.in_flight = self.most = self.sent = 0
        self.sent_before_the_first_ended = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with self._lock:
            number = self.sent
            self.sent += 1
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)

        def counted() -> Any:
            answer = fn(*args, **kwargs)
            if number == 0:
                time.sleep(0.3)
                self.sent_before_the_first_ended = self.sent
            return answer

        future = self._threads.submit(counted)
        future.add_done_callback(self._landed)
        return future

    def _landed(self, future: Future[Any]) -> None:
        with self._lock:
            self.in_flight -= 1


def small_task() -> Task:
    mechanism = dpaudit.batched(lambda data, size, rng: data + rng.laplace(size=size))
    learner = Learner(build_views)
    rng = np.random.default_rng(0)
    learner.settle(Settled((), (encode(rng.laplace(size=200)), encode(1.0 + rng.laplace(size=200)))), 200)
    return Task(Sampler(mechanism), 0.0, 1.0, learner.views, 7, (1, 0), 0, (), 1, "counted")


def test_back_pressure() -> None:
    counting = Counting()
    # A round that is expected to take long is cut into many tasks.
    ended = rounds.run_round(
        small_task(), [10] * 500, deadline=None, runner=TaskRunner(counting), seconds_each=0.05, on_block=lambda _: None
    )
    assert ended.cause is None
    assert counting.sent == 500
    assert counting.most <= rounds.LIMITS.in_flight * 2
    assert counting.sent_before_the_first_ended <= rounds.LIMITS.ahead * 2
    assert len(ended.blocks) <= rounds.LIMITS.most_blocks  # added up as they came
    here = rounds.run_round(
        small_task(), [10] * 500, deadline=None, runner=TaskRunner(None), seconds_each=0.05, on_block=lambda _: None
    )
    both = merge(ended.blocks), merge(here.blocks)
    assert both[0].size == both[1].size == 5000
    for one, other in zip(both[0].counts, both[1].counts, strict=True):
        assert (one == other).all()
    assert len(both[0].learn[0]) == len(both[1].learn[0]) == 500


def test_two_workers_draw_almost_twice_as_fast(there: Any, workers: Workers) -> None:
    """Five microseconds a sample, waited for, so that other work on the machine counts little.

    Whole audits with real work: `python -m benchmarks scaling`.
    """
    task = replace(small_task(), sampler=Sampler(there.Waits()), audit="raced")

    def seconds(executor: Executor) -> float:
        team = TaskRunner(executor)
        for number, size in enumerate((2000, 100_000)):  # the first warms up
            begin = time.perf_counter()
            ended = rounds.run_round(
                replace(task, key=(1, number)),
                block_sizes(size),
                deadline=None,
                runner=team,
                seconds_each=5e-6,
                on_block=lambda _: None,
            )
            elapsed = time.perf_counter() - begin
            assert ended.cause is None
        return elapsed

    with Workers(1) as one:
        assert seconds(one) / seconds(workers) > 1.6


def test_no_process_is_left_at_the_end() -> None:
    executor = Workers(2)
    pids = {executor.submit(os.getpid).result() for _ in range(8)}
    executor.shutdown()
    executor.shutdown()
    assert not pids & {child.pid for child in multiprocessing.active_children()}
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(os.getpid)


BORN = """
import signal
from pathlib import Path
from dpaudit.engine.sampling.processes import Workers

class Seen(Workers):
    def _start(self, pipe):
        process = super()._start(pipe)
        status = Path(f"/proc/{process.pid}/status").read_text()  # long before it has imported anything
        blocked = int(status.split("SigBlk:")[1].split()[0], 16)
        print(bool(blocked >> signal.SIGINT - 1 & 1), flush=True)
        return process

if __name__ == "__main__":
    with Seen(3) as workers:
        print(workers.submit(pow, 2, 5).result())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc here")
def test_control_c_while_processes_start_reaches_none_of_them(tmp_path: Path) -> None:
    """In a process of its own, where nothing has started the resource tracker before."""
    (tmp_path / "born.py").write_text(BORN)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = [sys.executable, str(tmp_path / "born.py")]
    out = subprocess.run(run, env=environ, capture_output=True, text=True, timeout=60, check=True).stdout
    # Processes that print at the same time may share a line.
    assert sorted(re.findall(r"True|False|\d+", out)) == ["32", "True", "True", "True"]
