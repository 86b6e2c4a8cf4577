"""Programs as mechanisms: both modes, every way to fail, and no process left behind."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.engine.events import RoundSettled
from dpaudit.engine.sampling.blocks import OutOfTime, Sampler
from dpaudit.engine.sampling.processes import Workers
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import children, clock_seed, programs
from dpaudit.mechanism.formats import data_text
from dpaudit.mechanism.outputs import Raised, ReleaseFailed
from dpaudit.mechanism.programs import OneProcess, Stream, program
from dpaudit.mechanism.waiting import DeadlinePassed, waiting_until
from dpaudit.result.model import StoppedBy

PYTHON = (sys.executable, "-I", "-S", "-c")
LAPLACE = """
import json, random, sys
for line in sys.stdin:
    request = json.loads(line)
    draw = random.Random(request["seed"])
    noise = [draw.expovariate(1.0) - draw.expovariate(1.0) for _ in range(request["size"])]
    {extra}
    print(json.dumps({{"outputs": [len(request["data"]) + {scale} * x for x in noise]}}), flush=True)
"""


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def shell(script: str, **options: Any) -> OneProcess:
    made = program(["sh", "-c", script], **options)
    assert isinstance(made.function, OneProcess)
    return made.function


def stream(code: str, **options: Any) -> Stream:
    made = program([*PYTHON, textwrap.dedent(code)], "stream", **options)
    assert isinstance(made, Stream)
    return made


def laplace(scale: float = 1.0, extra: str = "pass") -> Stream:
    return stream(LAPLACE.format(scale=scale, extra=extra))


def answering(*answers: str, then: str = "sys.exit()") -> Stream:
    """A stream that gives these answers, one for each request, whatever is asked."""
    lines = "".join(f"sys.stdin.readline(); print({answer!r}, flush=True)\n" for answer in answers)
    return stream(f"import sys, time\n{lines}sys.stdin.readline(); {then}")


def failure(mechanism: OneProcess | Stream, data: Any = ()) -> ReleaseFailed:
    with pytest.raises(ReleaseFailed) as caught:
        mechanism(data, rng()) if isinstance(mechanism, OneProcess) else mechanism.sample(data, 1, rng())
    return caught.value


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may have reaped an orphan yet.
    shown = Path(f"/proc/{pid}/stat")
    try:
        return not shown.exists() or shown.read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False


def wait_until_dead(pid: int) -> None:
    while alive(pid):
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Any:
    yield
    programs.close_streams()
    assert not children._LIVE


# --- one process for every release ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "form", "output"),
    [
        ("cat", "json", [1, 2]),
        ("cat", "text", "[1, 2]"),
        ("printf 'a\\nb\\n'", "lines", ["a", "b"]),
        ("echo 3 -2.5 nan", "numbers", pytest.approx([3, -2.5, float("nan")], nan_ok=True)),
        ("echo 1e3", "numbers", 1000.0),
        ("echo hello", len, 6),
        ("printf '\\377'", "text", "\\xff"),
    ],
)
def test_output_is_read_in_the_form_that_was_named(script: str, form: Any, output: Any) -> None:
    assert shell(script, output_as=form)([1, 2], rng()) == output


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        ([1, 2.5, None, "x"], "json", '[1, 2.5, null, "x"]'),
        (np.array([[1, 2]]), "json", "[[1, 2]]"),
        (pd.DataFrame({"a": [1], "b": ["x"]}), "json", '[{"a": 1, "b": "x"}]'),
        (pd.Series([1, 2]), "json", "[1, 2]"),
        ({"b", "a"}, "json", '["a", "b"]'),
        ([{"age": 1, "city": "a,b"}], "csv", 'age,city\n1,"a,b"\n'),
        (pd.DataFrame({"a": [1, 2]}), "csv", "a\n1\n2\n"),
        (np.array([[1.5, 2.0]]), "csv", "1.5,2.0\n"),
        ([1, 2], "csv", "1\n2\n"),
        ([], "csv", ""),
        ([1, 2], len, "2"),
        ([1, 2], repr, "[1, 2]"),
    ],
)
def test_data_are_written_in_the_form_that_was_named(data: Any, form: Any, text: str) -> None:
    assert data_text(data, form) == text


@pytest.mark.parametrize("data", [float("nan"), object(), {(1, 2): 3}, b"x"])
def test_data_without_a_json_form_are_an_error_that_says_what_to_do(data: Any) -> None:
    with pytest.raises(MechanismError, match=r"cannot be written as JSON .* Pass data_as=f"):
        shell("cat")(data, rng())


def test_seed_and_file_are_filled_in() -> None:
    words = ["sh", "-c", 'echo "$1"; cat "$2"', "sh", "--seed={seed}", "{file}"]
    made = program(words, output_as="lines", data_as="lines").sample([7, 8], 2, rng())
    assert [lines[1:] for lines in made] == [["7", "8"]] * 2
    seeds = {int(lines[0].removeprefix("--seed=")) for lines in made}
    assert len(seeds) == 2
    assert program(words, output_as="lines", data_as="lines").sample([7, 8], 2, rng()) == made


def test_folder_and_environment(tmp_path: Path) -> None:
    made = shell("pwd; echo $A", folder=tmp_path, environment={"A": "b"}, output_as="lines")
    assert made([], rng()) == [str(tmp_path.resolve()), "b"]


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("echo 'row 17 is bad' >&2; exit 3", "exit code 3", "row 17 is bad"),
        ("echo first >&2; echo last >&2; echo >&2; exit 4", "exit code 4", "last"),
        ("kill -SEGV $$", "signal SIGSEGV", ""),
        ("kill -KILL $$", "signal SIGKILL", ""),
        ("echo hello", "unreadable answer", "'hello\\n' is not JSON"),
        ("echo 1 2", "unreadable answer", "'1 2\\n' is not JSON"),
        ("true", "unreadable answer", "nothing, instead of JSON"),
        ("echo 1; exit 1", "exit code 1", ""),
        ("yes", "endless answer", "more than 64 MiB on standard output"),
        ("head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 5", "exit code 5", "x" * children.STDERR_KEPT),
    ],
)
def test_ways_to_fail(script: str, kind: str, message: str) -> None:
    failed = failure(shell(script))
    assert (failed.kind, failed.message) == (kind, message)
    assert Raised.from_exception(failed).type == kind


def test_failures_are_outputs_that_keep_the_exit_code_and_blank_numbers_of_the_message() -> None:
    mechanism = program(["sh", "-c", "read x; echo row $x >&2; exit $x"], data_as="lines")
    assert mechanism.sample([3], 1, rng()) == [Raised("exit code 3", "row #")]
    assert mechanism.sample([4], 1, rng()) == [Raised("exit code 4", "row #")]
    assert pickle.loads(pickle.dumps(failure(shell("exit 3")))).kind == "exit code 3"


def test_a_megabyte_of_noise_is_read_in_whole_and_shown_in_part() -> None:
    noise = "head -c 1000000 /dev/zero | tr '\\0' x"
    assert shell(noise, output_as="text")([], rng()) == "x" * 1_000_000
    failed = failure(shell(noise))
    assert failed.kind == "unreadable answer"
    assert len(failed.message) < 300


def test_input_may_be_large_and_need_not_be_read() -> None:
    rows = ["x" * 1000] * 3000
    assert shell("wc -c", output_as="numbers", data_as="lines")(rows, rng()) == 3_003_000
    assert shell("echo 1")(rows, rng()) == 1
    assert shell("cat", data_as="lines", output_as="lines")(rows, rng()) == rows


def test_text_on_standard_error_is_an_output_where_it_is_asked_for() -> None:
    assert shell("echo 1; echo hint >&2")([], rng()) == 1
    assert shell("echo 1; echo hint >&2", stderr="output")([], rng()) == {"output": 1, "stderr": "hint\n"}


def test_a_child_left_behind_neither_delays_the_release_nor_survives_it() -> None:
    # The child has the pipe of standard output, so waiting for the end of the pipe would take an hour.
    pid = shell("sleep 3600 & echo $!")([], rng())
    wait_until_dead(pid)


def test_a_program_that_cannot_be_started_is_an_error_not_an_output(tmp_path: Path) -> None:
    for command, folder in (("./missing-program", None), (["sh", "-c", "true"], tmp_path / "missing")):
        with pytest.raises(MechanismError, match="cannot be started"):
            program(command, folder=folder).sample([], 1, rng())
    plain = tmp_path / "data.txt"
    plain.write_text("no program")
    with pytest.raises(MechanismError, match="cannot be started"):
        program([str(plain)]).sample([], 1, rng())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": ""}, "must name a program"),
        ({"command": []}, "must name a program"),
        ({"command": "echo 'x"}, "must be text, or a list of words"),
        ({"command": 7}, "must be text, or a list of words"),
        ({"command": "a", "mode": "steam"}, "Did you mean 'stream'"),
        ({"command": "a", "output_as": "jsno"}, "Did you mean 'json'"),
        ({"command": "a", "data_as": 7}, "or a function"),
        ({"command": "a", "mode": "stream", "data_as": "csv"}, "is for mode='once'"),
        ({"command": "a", "mode": "stream", "output_as": "text"}, "for mode='once'"),
        ({"command": "a", "environment": {"A": 1}}, "must have text"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        program(**arguments)


# --- a process that stays ---------------------------------------------------------------------------------------------


def test_a_stream_answers_requests_in_order_and_from_the_seed() -> None:
    mechanism = laplace()
    first = mechanism.sample([1, 2], 5, rng())
    assert len(first) == 5
    assert mechanism.sample([1, 2], 5, rng()) == first
    assert mechanism.sample([1, 2], 5, rng(1)) != first
    shifted = mechanism.sample([], 5, rng())
    assert np.allclose(np.array(first) - 2.0, shifted)


def test_the_request_has_its_members_in_a_fixed_order() -> None:
    mechanism = stream("import json\nfor line in open(0): print(json.dumps({'outputs': [line]}), flush=True)")
    (line,) = mechanism.sample([1, "a"], 1, rng())
    assert line == f'{{"size": 1, "seed": {rng().integers(2**53)}, "data": [1, "a"]}}\n'


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ('\'{"error": "no row 17"}\'', "error", "no row 17"),
        ('\'{"error": {"type": "ValueError", "message": "x"}}\'', "ValueError", "x"),
        ('"Loading the model ..."', "unreadable answer", "'Loading the model ...' is not JSON"),
        ('""', "unreadable answer", "nothing, instead of JSON"),
        ('"[1]"', "unreadable answer", "'[1]' is not of the form"),
        ("'{\"outputs\": 1}'", "unreadable answer", "is not of the form"),
        ("'{\"outputs\": [1]'", "unreadable answer", "is not JSON"),
        ('\'{"outputs": [1], "seed": 5}\'', "unreadable answer", "is not the answer to the request with seed"),
        ("'[' * 100_000", "unreadable answer", "is not JSON"),
        ("'x' * 1_000_000", "unreadable answer", "(1,000,000 characters)"),
    ],
)
def test_answers_that_are_failures(answer: str, kind: str, message: str) -> None:
    failed = failure(stream(f"input(); print({answer}, flush=True); input()"))
    assert failed.kind == kind
    assert message in failed.message


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import sys; sys.stdin.readline(); sys.stderr.write('gone'); sys.exit(3)", "exit code 3"),
        ("import os; input(); os.kill(os.getpid(), 11)", "signal SIGSEGV"),
        (
            "import sys; input(); sys.stdout.write('{\"outputs\": [1'); sys.exit(3)",
            "exit code 3 in the middle of an answer",
        ),
        ("import sys", "exit code 0"),
        ("import os, time; input(); os.close(1); time.sleep(3600)", "closed its standard output"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "endless answer"),
    ],
)
def test_a_process_that_stops_answering(code: str, kind: str) -> None:
    assert failure(stream(code)).kind == kind


def test_fatal_answers_and_wrong_numbers_of_outputs_end_the_audit() -> None:
    with pytest.raises(MechanismError, match=r"^no such module$"):
        answering('{"fatal": "no such module"}').sample([], 1, rng())
    with pytest.raises(MechanismError, match="returned 2 outputs for size=1"):
        answering('{"outputs": [1, 2]}').sample([], 1, rng())


def test_an_unrequested_answer_is_never_taken_for_the_next_one() -> None:
    mechanism = answering('{"outputs": [1]}\n{"outputs": [2]}')
    assert mechanism.sample([], 1, rng()) == [1]
    child = next(iter(children._LIVE))
    while not child.unread:
        time.sleep(0.001)
    failed = failure(mechanism)
    assert "an answer is one line" in failed.message
    assert mechanism.sample([], 1, rng()) == [1]  # of a new process


def test_a_process_that_ended_after_its_answer_is_replaced() -> None:
    mechanism = stream("import os\ninput(); print('{\"outputs\": [%d]}' % os.getpid(), flush=True)")
    (first,) = mechanism.sample([], 1, rng())
    wait_until_dead(first)
    (second,) = mechanism.sample([], 1, rng())
    assert first != second


def test_standard_error_never_blocks_a_stream() -> None:
    mechanism = laplace(extra="sys.stderr.write('x' * 300_000)")
    for _ in range(3):
        assert len(mechanism.sample([], 2, rng())) == 2


@pytest.mark.parametrize(
    "code", ["import time; time.sleep(3600)", "input(); print(end='{\"outputs\"', flush=True); input()"]
)
def test_a_hanging_process_is_killed_at_the_deadline(code: str) -> None:
    mechanism = stream(code)
    with pytest.raises(DeadlinePassed), waiting_until(time.monotonic() + 0.1):
        mechanism.sample([], 1, rng())
    assert not children._LIVE
    seed = np.random.SeedSequence(0)
    with pytest.raises(OutOfTime):
        Sampler(mechanism).draw([], 1, seed, time.monotonic() + 0.1)
    with pytest.raises(OutOfTime):
        Sampler(program("sleep 3600")).draw([], 1, seed, time.monotonic() + 0.1)
    assert not children._LIVE


def test_interrupts_kill_the_process_that_was_waited_for() -> None:
    mechanism = stream("import time; time.sleep(3600)")
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        mechanism.sample([], 1, rng())
    assert not children._LIVE


def test_threads_have_processes_of_their_own() -> None:
    mechanism = stream("import os\nfor line in open(0): print('{\"outputs\": [%d]}' % os.getpid(), flush=True)")
    barrier = threading.Barrier(2)

    def ask(_: int) -> Any:
        barrier.wait()
        (pid,) = mechanism.sample([], 1, rng())
        barrier.wait()
        programs.close_streams()
        return pid

    with ThreadPoolExecutor(2) as executor:
        assert len(set(executor.map(ask, range(2)))) == 2


def test_the_number_of_open_streams_is_bounded() -> None:
    for number in range(programs.MOST_IDLE + 2):
        assert answering(f'{{"outputs": [{number}]}}').sample([], 1, rng()) == [number]
        assert len(children._LIVE) <= programs.MOST_IDLE


def test_programs_are_values_that_pickle_and_write_themselves_down() -> None:
    for mechanism in (laplace(), program("./count --epsilon 1").function):
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        assert eval(repr(mechanism)) == mechanism


def test_when_this_process_is_killed_its_children_are() -> None:
    # The child ignores the end of its input, and its parent has no chance to clean up.
    code = """
        import os, signal, sys
        import numpy as np
        from dpaudit.mechanism.programs import program
        hanging = program(["sh", "-c", "read x; echo '{\\"outputs\\": ['$$']}'; sleep 3600"], "stream")
        print(*hanging.sample([], 1, np.random.default_rng(0)), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until_dead(int(done.stdout))


# --- audits -----------------------------------------------------------------------------------------------------------

PAIR = [([], [1])]
SLOWLY = "__import__('time').sleep(2e-4 * request['size'])"


def test_half_the_noise_is_found_and_the_script_of_the_witness_runs(tmp_path: Path) -> None:
    result = dpaudit.audit(laplace(0.5), dpaudit.PureDP(1.0), PAIR, seed=0)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.reproducible
    script = tmp_path / "witness.py"
    script.write_text(result.witness.script())
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"event on data:      {result.witness.on_data.count} of" in done.stdout or "log-ratio" in done.stdout


def test_a_program_that_keeps_its_claim_is_not_accused() -> None:
    # False-alarm probability: alpha = 1e-6.
    result = dpaudit.audit(laplace(1.0), dpaudit.PureDP(1.0), PAIR, samples=40_000, seed=0)
    assert result.verdict is not dpaudit.Verdict.VIOLATION


CRASHES = """
while read line; do
    case "$line" in
        '{"size": 1,'*'[1]}') echo 'cannot read row 1' >&2; exit 9;;
        '{"size": 1,'*) echo '{"outputs": [0]}';;
        *) exit 8;;
    esac
done
"""


def test_a_crash_on_one_data_set_is_found() -> None:
    # It also fails on requests for more than one output, so that the audit goes on one release at a time.
    result = dpaudit.audit(program(["sh", "-c", CRASHES], "stream"), dpaudit.PureDP(1.0), PAIR, samples=2000, seed=0)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.witness.event in ("output == 0", "raises exit code 9: cannot read row #")
    assert any("exit code 8" in message and "one release at a time" in message for message in result.messages)


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_a_process_that_is_killed_in_the_middle_settles_nothing_twice(scale: float) -> None:
    killed: list[int] = []

    def kill(event: Any) -> None:
        if isinstance(event, RoundSettled) and not killed:
            (child,) = children._LIVE
            killed.append(child._process.pid)
            os.kill(child._process.pid, signal.SIGKILL)
            wait_until_dead(child._process.pid)

    result = dpaudit.audit(laplace(scale), dpaudit.PureDP(1.0), PAIR, samples=20_000, seed=0, on_event=kill)
    assert killed
    expected = dpaudit.Verdict.VIOLATION if scale == 0.5 else dpaudit.Verdict.NO_VIOLATION_FOUND
    assert result.verdict is expected
    # Killed between two requests, it was replaced before the next one: nothing was lost, so nothing was asked again.
    undisturbed = dpaudit.audit(laplace(scale), dpaudit.PureDP(1.0), PAIR, samples=20_000, seed=0)
    assert (result.samples, result.epsilon_lower) == (undisturbed.samples, undisturbed.epsilon_lower)


def test_a_process_that_is_killed_in_a_call_for_many_is_drawn_one_release_at_a_time() -> None:
    half = "print(end='[0.', flush=True) or __import__('os').kill(__import__('os').getpid(), 9)"
    mechanism = laplace(1.0, extra=f"request['size'] > 200 and ({half})")
    result = dpaudit.audit(mechanism, dpaudit.PureDP(1.0), PAIR, samples=8_000, seed=0)
    assert result.verdict is not dpaudit.Verdict.VIOLATION
    (message,) = (message for message in result.messages if "one release at a time" in message)
    assert "signal SIGKILL in the middle of an answer" in message


def test_workers_have_processes_of_their_own_which_end_with_them(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    note = f"open({str(seen)!r}, 'a').write(str(__import__('os').getpid()) + chr(10)); {SLOWLY}"
    mechanism = laplace(0.5, extra=note)
    with Workers(2) as workers:
        result = dpaudit.audit(mechanism, dpaudit.PureDP(1.0), PAIR, seed=0, executor=workers)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    pids = set(map(int, seen.read_text().split()))
    assert len(pids) == 3  # of the audit itself, and of each worker
    for pid in pids:
        wait_until_dead(pid)


def test_a_program_that_seeds_itself_with_a_constant_is_noticed_where_workers_share_it() -> None:
    code = "import random; once = random.Random(7)\n" + LAPLACE.format(scale=1.0, extra=SLOWLY)
    mechanism = stream(code.replace('random.Random(request["seed"])', "once"))
    with Workers(2) as workers, pytest.raises(MechanismError, match="Workers gave the same sequence of outputs"):
        dpaudit.audit(mechanism, dpaudit.PureDP(1.0), PAIR, seed=0, samples=20_000, executor=workers)


HANGS = "request['data'] and __import__('time').sleep(3600)"


def test_a_program_whose_seed_is_the_time_is_an_error_and_one_without_noise_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = tmp_path / "clock"
    clock.write_text("1")
    waits: list[float] = []

    def wait(seconds: float) -> None:  # the file stands for the clock, so that the test does not depend on the real one
        waits.append(seconds)
        clock.write_text(str(len(waits) + 1))

    monkeypatch.setattr(clock_seed.time, "sleep", wait)
    with pytest.raises(MechanismError, match="The time is its seed, so its releases are not independent"):
        program(["cat", str(clock)]).sample([], clock_seed.REPEATS_TO_CHECK, rng())
    assert program("echo 1").sample([], 2 * clock_seed.REPEATS_TO_CHECK, rng()) == [1] * 2 * clock_seed.REPEATS_TO_CHECK
    assert len(waits) == 4  # once for each program
    with waiting_until(time.monotonic() + 2.0):  # no time for a check
        program("echo 2").sample([], clock_seed.REPEATS_TO_CHECK, rng())
    assert len(waits) == 4
    program("echo 2").sample([], 1, rng())  # now there is
    assert len(waits) == 6


def test_a_program_that_hangs_ends_with_the_time_budget() -> None:
    result = dpaudit.audit(laplace(1.0, extra=HANGS), dpaudit.PureDP(1.0), PAIR, seconds=1.5, seed=0)
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    assert result.stopped_by is StoppedBy.SECONDS
    assert any("had not answered after" in message for message in result.messages)


def test_a_program_that_hangs_ends_the_audit_at_the_time_out_or_is_an_output() -> None:
    options: dict[str, Any] = {"samples": 1000, "seed": 0, "timeout": 0.05}
    result = dpaudit.audit(program("sleep 3600"), dpaudit.PureDP(1.0), PAIR, **options)
    assert result.stopped_by is StoppedBy.TIMEOUT
    for mode in ("once", "stream"):
        sampler = Sampler(program("sleep 3600", mode), one_by_one=True, timeout=0.05, timeout_is_output=True)
        assert (
            sampler.draw([], 2, np.random.SeedSequence(0))
            == [Raised("TimeoutError", "took longer than the time-out")] * 2
        )


def test_programs_run_in_audit_files_and_are_named_by_their_command(tmp_path: Path) -> None:
    audit = dpaudit.Audit(
        name="count", mechanism=laplace(0.5), claim=dpaudit.PureDP(1.0), neighbours=PAIR, expect="VIOLATION"
    )
    assert audit.run(seed=0).verdict is dpaudit.Verdict.VIOLATION
    result = dpaudit.audit(program("wc -c", output_as="numbers"), dpaudit.PureDP(1.0), PAIR, samples=10)
    assert result.name == "wc -c"


def test_a_slow_program_that_takes_the_time_as_its_seed_is_noticed_by_its_releases(monkeypatch) -> None:
    monkeypatch.setattr(clock_seed, "_by_second", {})

    def released(program: str, noise: Any, each: int, seconds: int) -> None:
        for second in range(seconds):
            for place in range(each):
                start = second + 0.3 * place
                clock_seed.observe(program, [1], noise(second, place), start, start + 0.2, program)

    released("fresh noise", lambda second, place: (second, place), each=3, seconds=100)
    released("a constant", lambda second, place: 7, each=3, seconds=100)
    released("one a second", lambda second, place: second, each=1, seconds=100)
    with pytest.raises(MechanismError, match="The time is its seed"):
        released("the second", lambda second, place: second, each=3, seconds=14)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("k", [2, 3, 4, 10])
def test_the_bound_on_two_seconds_by_brute_force(n: int, k: int) -> None:
    rng = np.random.default_rng(n + 10 * k)
    for weights in [np.ones(k), *rng.dirichlet(np.full(k, 0.3), 50)]:
        p = weights / weights.sum()
        both = (p[:, None] * p) ** n
        assert both.sum() - np.trace(both) <= 2.0 ** (1 - 2 * n) * (1 + 1e-12)
