"""Services as mechanisms, against a real server on the loopback address."""

from __future__ import annotations

import json
import pickle
import random
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import numpy as np
import pytest

import dpaudit
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import services
from dpaudit.mechanism.outputs import Raised
from dpaudit.mechanism.services import service
from dpaudit.mechanism.waiting import DeadlinePassed, waiting_until
from dpaudit.result.model import StoppedBy


class Handler(BaseHTTPRequestHandler):
    """Counts rows with noise, and fails in the way that the path names."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    requests: ClassVar[list[tuple[str, int, Any]]] = []  # path, port of the client, authorization
    release = threading.Event()

    def do_POST(self) -> None:
        Handler.requests.append((self.path, self.client_address[1], self.headers.get("Authorization")))
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match self.path:
            case "/count":
                self.answer(200, json.dumps(len(body) + 0.5 * (random.expovariate(1.0) - random.expovariate(1.0))))
            case "/batch":
                draw = random.Random(body["seed"])
                noise = [draw.expovariate(1.0) - draw.expovariate(1.0) for _ in range(body["size"])]
                self.answer(200, json.dumps({"outputs": [len(body["data"]) + 0.5 * x for x in noise]}))
            case "/short":
                self.answer(200, '{"outputs": []}')
            case "/text":
                self.answer(201, "seven rows")
            case "/busy":
                self.answer(503, f"busy since {len(body)} requests\nand a second line")
            case "/empty-is-404":
                self.answer(200 if body else 404, "1")
            case "/redirect":
                self.answer(302, "", Location="/count")
            case "/once":  # closes the connection after a complete answer
                self.close_connection = True
                self.answer(200, "1")
            case "/drop":  # closes the connection without an answer
                self.close_connection = True
            case "/half":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"[1, 2")
                self.close_connection = True
            case "/hang":
                Handler.release.wait(30)
                self.close_connection = True

    def answer(self, status: int, text: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        Handler.release.set()
        running.shutdown()
        services.close_connections()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    Handler.requests.clear()
    yield
    services.close_connections()


def outputs(mechanism: Any, data: Any = (1,), size: int = 1) -> Any:
    return mechanism.sample(list(data), size, np.random.default_rng(0))


def test_releases_share_one_connection(server: str) -> None:
    made = outputs(service(f"{server}/count", headers={"Authorization": "secret"}), [1, 2], 5)
    assert len(set(made)) == 5
    assert len({port for _, port, _ in Handler.requests}) == 1
    assert {header for *_, header in Handler.requests} == {"secret"}


def test_a_batch_is_one_request_and_uses_the_seed(server: str) -> None:
    mechanism = service(f"{server}/batch", batched=True)
    first = outputs(mechanism, [1], 6)
    assert len(Handler.requests) == 1
    assert first == outputs(mechanism, [1], 6)
    with pytest.raises(MechanismError, match="returned 0 outputs for size=3"):
        outputs(service(f"{server}/short", batched=True), [1], 3)


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("/text", Raised("unreadable answer", "'...' is not JSON")),
        ("/busy", Raised("status 503", "busy since # requests")),
        ("/redirect", Raised("status 302")),
        ("/drop", Raised("http.client.RemoteDisconnected", "Remote end closed connection without response")),
        ("/half", Raised("http.client.IncompleteRead", "IncompleteRead(# bytes read, # more expected)")),
    ],
)
def test_failures_are_outputs_and_nothing_is_sent_twice(server: str, path: str, output: Raised) -> None:
    assert outputs(service(f"{server}{path}"), size=2) == [output, output]
    assert [asked for asked, *_ in Handler.requests] == [path, path]


def test_bodies_of_failures_are_outputs_where_it_is_asked_for(server: str) -> None:
    (output,) = outputs(service(f"{server}/busy", failures="output"))
    assert output == {"status": 503, "body": "busy since 1 requests\nand a second line"}
    assert outputs(service(f"{server}/text", output_as="text")) == ["seven rows"]


def test_a_connection_that_the_server_closed_is_replaced_before_anything_is_sent(server: str) -> None:
    mechanism = service(f"{server}/once")
    for _ in range(3):
        assert outputs(mechanism) == [1]
        for connection in services._connections.values():
            while connection.sock is not None and not services._closed_by_server(connection):
                time.sleep(0.001)
    assert len(Handler.requests) == 3


def test_no_server_at_all_is_an_error_of_the_audit(server: str) -> None:
    with pytest.raises(MechanismError, match=r"(?s)raised on every call.*ConnectionRefusedError"):
        dpaudit.audit(service("http://127.0.0.1:9/x"), dpaudit.PureDP(1.0), [([], [1])], samples=1000)


def test_a_server_that_hangs_ends_with_the_time_budget(server: str) -> None:
    with pytest.raises(DeadlinePassed), waiting_until(time.monotonic() + 0.1):
        outputs(service(f"{server}/hang"))
    result = dpaudit.audit(
        service(f"{server}/hang"), dpaudit.PureDP(1.0), [([], [1])], timeout=0.05, samples=1000, seed=0
    )
    assert result.stopped_by is StoppedBy.TIMEOUT


def test_audits(server: str) -> None:
    mechanism = service(f"{server}/batch", batched=True)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    result = dpaudit.audit(mechanism, dpaudit.PureDP(1.0), [([], [1])], seed=0)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.name == f"{server}/batch"
    leak = dpaudit.audit(
        service(f"{server}/empty-is-404"), dpaudit.PureDP(1.0), [([], [1])], seed=0, samples=1000, shrink=False
    )
    assert leak.verdict is dpaudit.Verdict.VIOLATION
    assert not services._connections


def test_secrets_in_headers_are_shown_nowhere(server: str) -> None:
    result = dpaudit.audit(
        service(f"{server}/batch", batched=True, headers={"Authorization": "hidden-token"}),
        dpaudit.PureDP(1.0),
        [([], [1])],
        seed=0,
        shrink=False,
    )
    assert result.witness is not None
    assert "hidden-token" not in str(result) + result.witness.script() + json.dumps(result.to_dict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "localhost:8000"}, "must be an address such as"),
        ({"url": 7}, "must be an address such as"),
        ({"url": "http://a", "output_as": "xml"}, "must be one of"),
        ({"url": "http://a", "failures": "hidden"}, "must be one of"),
        ({"url": "http://a", "batched": True, "failures": "output"}, "are for batched=False"),
        ({"url": "http://a", "headers": {"A": 1}}, "must have text"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        service(**arguments)
