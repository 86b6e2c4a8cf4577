"""Services as mechanisms: every release is a POST of JSON, and what comes back is the output.

No request is sent twice. A library that repeats a request after a lost connection or a status 503 hides a failure that
may depend on the data, so here every failure is the output of its release. Redirects are not followed, for the same
reason. One connection is kept open; where the server has closed it in the meantime, a new one is made before anything
is sent.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import selectors
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from dpaudit._util.validation import check_choice, check_count, check_generator, shorten
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism.children import LARGEST_ANSWER
from dpaudit.mechanism.formats import (
    OUTPUT_FORMS,
    DataForm,
    OutputForm,
    check_form,
    data_text,
    json_text,
    read_json,
    read_output,
    unreadable,
)
from dpaudit.mechanism.functions import PerRelease
from dpaudit.mechanism.outputs import Outputs, ReleaseFailed, checked_outputs
from dpaudit.mechanism.programs import SEEDS
from dpaudit.mechanism.waiting import at_end_of_audit, deadline_passed, seconds_left


def service(
    url: str,
    *,
    batched: bool = False,
    data_as: DataForm = "json",
    output_as: OutputForm = "json",
    headers: Mapping[str, str] | None = None,
    failures: Literal["raised", "output"] = "raised",
) -> PerRelease | BatchedService:
    """Return an HTTP service as a mechanism.

    Parameters
    ----------
    url : str
        Where to POST, with ``http`` or ``https``. Proxies are not used.
    batched : bool
        False: a request has the data as its body, and its answer is one output. True: a request is
        ``{"size": 3, "seed": 17, "data": [...]}``, and its answer ``{"outputs": [...]}`` of that many outputs.
    data_as : "json" or callable
        A function gets the data set and returns the text, or what JSON can hold.
    output_as : {"json", "text", "lines", "numbers"} or callable
        How a body is read, unless ``batched``.
    headers : mapping, optional
        Added to every request. They may hold secrets, so results never show them.
    failures : {"raised", "output"}
        What an answer with another status than 2xx is, unless ``batched``: an exception ``status 503``, of whose body the first
        line counts, with numbers and quoted text blanked; or the output ``{"status": 503, "body": text}`` in full.

    Notes
    -----
    Every worker has a connection of its own. The time budget of the audit (``seconds=``, ``timeout=``) ends a request that is
    not answered. A service draws its own random numbers: the audit is valid, but cannot be replayed, unless it uses the seed.

    Examples
    --------
    >>> service("http://localhost:8000/count", headers={"Authorization": "secret"}).function
    Service(url='http://localhost:8000/count', data_as='json', output_as='json', failures='raised')
    """
    check_form(("json",), data_as=data_as)
    check_form(OUTPUT_FORMS, output_as=output_as)
    check_choice(("raised", "output"), failures=failures)
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgument(f"url={shorten(url)} must be an address such as http://localhost:8000/count.")
    if batched and (output_as != "json" or failures != "raised"):
        raise InvalidArgument(
            f"output_as={shorten(output_as)}, failures={failures!r} are for batched=False; batches are answered in JSON."
        )
    given = tuple(sorted((headers or {}).items()))
    if not all(isinstance(text, str) for header in given for text in header):
        raise InvalidArgument("headers= must have text as names and as values.")
    if batched:
        return BatchedService(url, data_as, given)
    return PerRelease(Service(url, data_as, output_as, given, failures))


@dataclass(frozen=True, slots=True)
class Service:
    """A service that answers with one output; see :func:`service`."""

    url: str
    data_as: DataForm = "json"
    output_as: OutputForm = "json"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    failures: str = "raised"

    @property
    def __name__(self) -> str:
        return self.url

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Post the data and return the output; raise ReleaseFailed if the service fails."""
        del rng  # the service draws
        status, body = post(self.url, data_text(data, self.data_as).encode(), self.headers)
        if 200 <= status < 300:
            return read_output(body, self.output_as)
        if self.failures == "output":
            return {"status": status, "body": body.decode("utf-8", "backslashreplace")}
        raise _refused(status, body)


@dataclass(frozen=True, slots=True)
class BatchedService:
    """A service that answers with as many outputs as it is asked for; see :func:`service`."""

    url: str
    data_as: DataForm = "json"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def __name__(self) -> str:
        return self.url

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Ask for ``size`` outputs; raise ReleaseFailed if the service fails."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        seed = int(rng.integers(SEEDS))
        sent = json_text(self.data_as(data) if callable(self.data_as) else data)
        status, body = post(self.url, f'{{"size": {size}, "seed": {seed}, "data": {sent}}}'.encode(), self.headers)
        if not 200 <= status < 300:
            raise _refused(status, body)
        text = body.decode("utf-8", "backslashreplace")
        answer = read_json(text)
        if not isinstance(answer, dict) or not isinstance(answer.get("outputs"), list):
            raise unreadable(text, 'of the form {"outputs": [...]}')
        return checked_outputs(answer["outputs"], size)


def post(url: str, body: bytes, headers: tuple[tuple[str, str], ...]) -> tuple[int, bytes]:
    """Send one request and return status and body. Failures of the connection are exceptions, and so outputs."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    since = time.monotonic()
    connection = _connection(parts.scheme, parts.hostname or "", parts.port)
    try:
        _limit(connection, url, since)
        connection.request("POST", target, body, {"Content-Type": "application/json", **dict(headers)})
        _limit(connection, url, since)
        response = connection.getresponse()
        received = bytearray()
        while chunk := response.read1(1 << 16):
            received += chunk
            if len(received) > LARGEST_ANSWER:
                raise ReleaseFailed("endless answer", f"more than {LARGEST_ANSWER >> 20} MiB")
            _limit(connection, url, since)
        if response.length:  # read1, which waits for no more than one piece, does not notice
            raise http.client.IncompleteRead(bytes(received), response.length)
        response.close()
    except TimeoutError:
        connection.close()
        if seconds_left() == 0.0:  # the limit was ours
            raise deadline_passed(f"The service {url}", since) from None
        raise
    except BaseException:  # an answer that is still on its way must not be taken for that of the next request
        connection.close()
        raise
    return response.status, bytes(received)


def _refused(status: int, body: bytes) -> ReleaseFailed:
    lines = body.decode("utf-8", "backslashreplace").strip().splitlines()
    return ReleaseFailed(f"status {status}", lines[0] if lines else "")


def _limit(connection: http.client.HTTPConnection, url: str, since: float) -> None:
    """Let the connection wait no longer than the audit does."""
    left = seconds_left()
    if left == 0.0:
        raise deadline_passed(f"The service {url}", since)
    connection.timeout = left
    if connection.sock is not None:
        connection.sock.settimeout(left)


_connections: dict[tuple[Any, ...], http.client.HTTPConnection] = {}  # by process, thread and server


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    """Return the open connection of this thread to a server, or a new one that is made with the first request."""
    key = (os.getpid(), threading.get_ident(), scheme, host, port)
    connection = _connections.get(key)
    if connection is None:
        if scheme == "https":
            connection = http.client.HTTPSConnection(host, port, context=ssl.create_default_context())
        else:
            connection = http.client.HTTPConnection(host, port)
        _connections[key] = connection
    elif connection.sock is not None and _closed_by_server(connection):
        connection.close()  # nothing was sent, so this is no second try
    return connection


def _closed_by_server(connection: http.client.HTTPConnection) -> bool:
    """Return True if there is something to read before the request: the end of the connection, or an unrequested answer."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


@at_end_of_audit
def close_connections() -> None:
    """Close the connections that this thread has opened."""
    here = (os.getpid(), threading.get_ident())
    for key in [key for key in _connections if key[:2] == here]:
        with contextlib.suppress(OSError):
            _connections.pop(key).close()
