"""Sends a call until it is answered."""

from __future__ import annotations

import http.client
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from .errors import SerpmillError, error_of
from .reply import Reply, read_reply

# The API answers within 30 seconds unless its operator has set another deadline. A connection that is silent for longer is lost.
_attempt_s_max = 35.0
# For each address of the host: behind one that does not answer, another may.
_connect_s_max = 5.0
_pause_s_min = 0.5
_pause_s_max = 8.0


class Api:
    """Where a client sends its calls."""

    def __init__(self, base_url: str, token: str) -> None:
        self.base_url = base_url
        self.token = token
        # To read the system's certificates takes tens of milliseconds of CPU time, so all calls share them.
        self.tls = _tls_context() if urlsplit(base_url).scheme == "https" else None

    def __reduce__(self) -> tuple[Any, ...]:
        """So that a client can enter a process of a pool. A TLS context cannot."""
        return Api, (self.base_url, self.token)


@dataclass(frozen=True)
class Call:
    """One call of the API, which may take several requests. A call without a key is free."""

    method: str
    path: str
    answer_field: str
    deadline_s: float
    max_retries: int
    body: bytes | None = None
    idempotency_key: str | None = None


class Cancellation:
    """Ends its calls from another thread: it closes their connections, and no repeat follows."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._socks: set[socket.socket | None] = set()
        self._lock = threading.Lock()

    def cancel(self) -> None:
        self.event.set()
        with self._lock:
            for sock in self._socks:
                _shut(sock)

    def watch(self, sock: socket.socket | None) -> None:
        """Names a connection that `cancel` closes."""
        with self._lock:
            self._socks.add(sock)
            if self.event.is_set():
                _shut(sock)

    def forget(self, sock: socket.socket | None) -> None:
        with self._lock:
            self._socks.discard(sock)


def send(api: Api, call: Call, cancellation: Cancellation) -> Reply[Any]:
    """Sends a call until it is answered.

    It is repeated under the same key while a repeat can help and the deadline allows it. Once an answer may have been
    charged and lost, only the deadline ends the repeats, because each of them can fetch it. So does it while other searches
    of the organization take all its slots. Raises SerpmillError.
    """
    ends_at = time.monotonic() + call.deadline_s  # This clock never jumps.
    may_be_charged = False
    attempts = failures = 0
    while True:
        attempts += 1
        try:
            reply = _attempt(api, call, cancellation, ends_at)
            reply.idempotency_key, reply.attempts = call.idempotency_key, attempts
            return reply
        except SerpmillError as error:
            may_be_charged = may_be_charged or (error.may_be_charged and call.idempotency_key is not None)
            error.may_be_charged, error.idempotency_key, error.attempts = may_be_charged, call.idempotency_key, attempts
            failures += 0 if _waits_for_own_searches(error) else 1
            may_repeat = error.can_repeat and call.max_retries > 0 and (may_be_charged or failures <= call.max_retries)
            pause_s = _pause_s(attempts, error.retry_after_s)
            if not may_repeat or time.monotonic() + pause_s >= ends_at:
                raise
        cancellation.event.wait(pause_s)


def _attempt(api: Api, call: Call, cancellation: Cancellation, ends_at: float) -> Reply[Any]:
    if cancellation.event.is_set():
        raise _aborted(may_be_charged=False)  # What was not sent is not charged.
    left_s = max(0.001, min(_attempt_s_max, ends_at - time.monotonic()))
    sock: socket.socket | None = None
    was_sent = False
    late = threading.Event()

    def end() -> None:
        late.set()
        _shut(sock)

    def watch(opened: socket.socket) -> None:
        """Names the connection that the deadline and a cancellation close, unless the call has ended."""
        nonlocal sock
        cancellation.forget(sock)
        sock = opened
        cancellation.watch(opened)
        if late.is_set() or cancellation.event.is_set():
            raise TimeoutError

    connection = _connection_to(api, min(left_s, _connect_s_max), watch)
    # The time-out of a socket is one for each read, which an answer that comes in small pieces never reaches.
    timer = threading.Timer(left_s, end)
    timer.daemon = True
    timer.start()
    try:
        connection.connect()
        watch(connection.sock)
        connection.sock.settimeout(left_s)
        url = api.base_url + call.path
        was_sent = True
        # The API answers before it has read a body that is too large, and closes the connection.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(call.method, urlsplit(url).path, call.body, _headers(api.token, call))
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        body = response.read()
        return read_reply(response.status, headers, body, url, call.answer_field)
    except SerpmillError:
        raise
    except Exception as cause:  # Also what a malformed answer raises while it is read.
        if cancellation.event.is_set():
            raise _aborted(may_be_charged=was_sent) from cause
        is_late = late.is_set() or isinstance(cause, TimeoutError)
        reason = "No answer came in time." if is_late else f"The connection failed before the answer was complete: {cause!r}"
        raise error_of("lost_reply", reason, may_be_charged=was_sent, can_repeat=True) from cause
    finally:
        timer.cancel()
        cancellation.forget(sock)
        connection.close()


class _FinalResponse(http.client.HTTPResponse):
    """`http.client` skips only 100 of the interim answers, which a proxy may send before the answer, such as 103."""

    def begin(self) -> None:
        super().begin()
        while 100 <= self.status < 200:
            self.headers = None  # type: ignore[assignment]  # With headers, `begin` reads nothing.
            super().begin()


def _open(
    address: tuple[str, int], timeout_s: float, source: object, *, watch: Callable[[socket.socket], None]
) -> socket.socket:
    """Connects to the first address of the host that answers.

    `socket.create_connection` would go on with the next address after the call has ended.
    """
    failure = OSError("The host has no address.")
    for family, kind, protocol, _, target in _look_up(address, timeout_s):
        sock: socket.socket | None = None
        try:
            sock = socket.socket(family, kind, protocol)
            sock.settimeout(timeout_s)
            watch(sock)
            sock.connect(target)
            return sock
        except OSError as cause:
            failure = cause
            if sock is not None:
                sock.close()
    raise failure


def _look_up(address: tuple[str, int], timeout_s: float) -> list[Any]:
    """`getaddrinfo` takes no time-out. One that takes longer ends by itself, in its own thread."""
    found: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(*address, 0, socket.SOCK_STREAM))
        except Exception as cause:
            found.set_exception(cause)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        return found.result(timeout_s)
    except FutureTimeoutError:  # Another class than TimeoutError in Python 3.10.
        raise TimeoutError from None


def _connection_to(
    api: Api, timeout_s: float, watch: Callable[[socket.socket], None]
) -> http.client.HTTPConnection:
    address = urlsplit(api.base_url)
    host = address.hostname or ""
    # Without a port `http.client` takes the end of an IPv6 address for one.
    port = address.port or (80 if api.tls is None else 443)
    connection = (
        http.client.HTTPConnection(host, port, timeout=timeout_s)
        if api.tls is None
        else http.client.HTTPSConnection(host, port, timeout=timeout_s, context=api.tls)
    )
    connection.response_class = _FinalResponse
    connection._create_connection = partial(_open, watch=watch)  # type: ignore[attr-defined]
    return connection


def _tls_context() -> ssl.SSLContext:
    """As `http.client` makes one for each connection that has none."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _headers(token: str, call: Call) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "Connection": "close"}
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    if call.idempotency_key is not None:
        headers["Idempotency-Key"] = call.idempotency_key
    return headers


def _shut(sock: socket.socket | None) -> None:
    """Wakes the thread that reads from the connection."""
    if sock is not None:
        try:
            # That of TLS first drops the encryption, under a thread that may still read or send.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
        except OSError:
            pass  # It is closed already.


def _aborted(may_be_charged: bool) -> SerpmillError:
    message = "The caller ended the call. A search that was already sent goes on, and is charged if it succeeds."
    return error_of("aborted", message, may_be_charged=may_be_charged, can_repeat=False)


def _waits_for_own_searches(error: SerpmillError) -> bool:
    """A refusal that is never charged and takes nothing of the rate window. Another job of the organization may cause many."""
    return error.code == "rate_limited" and error.details.get("reason") == "concurrency"


def _pause_s(attempts: int, retry_after_s: float | None) -> float:
    """With jitter, so that callers that failed together do not come back together. Also with a `Retry-After` it grows: the API
    refuses an organization that it had to refuse too often."""
    grown_s: float = min(_pause_s_min * 2.0 ** min(attempts - 1, 10), _pause_s_max) * (0.5 + random.random() / 2)
    return max(grown_s, (retry_after_s or 0.0) + random.random() * _pause_s_min)
