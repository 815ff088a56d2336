"""The clients: `Serpmill`, and `AsyncSerpmill` over threads."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .call import Call, Cancellation, send
from .errors import SerpmillError
from .rate_window import RateWindow
from .reply import Reply
from .schema import SearchAnswer, SearchRequest, Usage

_deadline_s_default = 90.0  # Two whole searches, and a third that only fetches what they paid.
_deadline_s_max = 12 * 3_600.0  # Far within the 24 hours for which the API keeps a paid answer under its key.
_max_retries_default = 4
_in_flight_default = 5  # The searches in flight that the plan `free` allows.


@dataclass
class Outcome:
    """How one of many searches ended. `index` is the request's position, from 0; `done` is how many have ended by now."""

    request: SearchRequest
    index: int
    answer: SearchAnswer | None
    error: SerpmillError | None
    done: int


class Serpmill:
    """A client of one API. Each search has one Idempotency-Key, which all its repeats share, so no search is charged twice.

    token, base_url: `SERPMILL_TOKEN` and `SERPMILL_URL` of the environment by default.
    deadline_s: the most time for one call with its repeats, in seconds; at most 12 hours.
    max_retries: how often a call is repeated that was certainly not charged. A search that may have been charged is
        repeated until the deadline. 0: no call is ever repeated.
    Raises ValueError if token or address are missing or not valid.
    """

    def __init__(
        self,
        token: str | None = None,
        base_url: str | None = None,
        deadline_s: float = _deadline_s_default,
        max_retries: int = _max_retries_default,
    ) -> None:
        token = token or os.environ.get("SERPMILL_TOKEN", "")
        base_url = base_url or os.environ.get("SERPMILL_URL", "")
        if not re.fullmatch(r"[!-~]+", token):
            raise ValueError("Expected a token in `token` or SERPMILL_TOKEN.")
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"Expected the API's address, https://…, in `base_url` or SERPMILL_URL. Got {base_url!r}.")
        self._token = token
        self._base_url = base_url.rstrip("/")
        self._deadline_s = deadline_s
        self._max_retries = max_retries
        self._limits(None, None)

    def search(
        self,
        request: SearchRequest,
        *,
        idempotency_key: str | None = None,
        deadline_s: float | None = None,
        max_retries: int | None = None,
    ) -> SearchAnswer:
        """Runs a search. It is charged once, however often it has to be repeated. Raises SerpmillError."""
        reply = self.search_with_response(
            request, idempotency_key=idempotency_key, deadline_s=deadline_s, max_retries=max_retries
        )
        return reply.data

    def search_with_response(
        self,
        request: SearchRequest,
        *,
        idempotency_key: str | None = None,
        deadline_s: float | None = None,
        max_retries: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> Reply[SearchAnswer]:
        """The same, with headers, ids and the number of attempts."""
        deadline_s, max_retries = self._limits(deadline_s, max_retries)
        key = idempotency_key or str(uuid.uuid4())
        if not re.fullmatch(r"[!-~]{1,255}", key):
            raise ValueError(f"Expected 1 to 255 visible ASCII characters as `idempotency_key`. Got {key!r}.")
        body = json.dumps(request).encode()
        call = Call("POST", "/v1/serp/search", "results", deadline_s, max_retries, body, key)
        return send(self._base_url, self._token, call, cancellation or Cancellation())

    def usage(self, *, deadline_s: float | None = None, max_retries: int | None = None) -> Usage:
        """Reads the available credit, the plan and the limits. It costs nothing. Raises SerpmillError."""
        return self.usage_with_response(deadline_s=deadline_s, max_retries=max_retries).data

    def usage_with_response(
        self,
        *,
        deadline_s: float | None = None,
        max_retries: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> Reply[Usage]:
        """The same, with headers and the number of attempts."""
        call = Call("GET", "/v1/usage", "creditBalanceMils", *self._limits(deadline_s, max_retries))
        return send(self._base_url, self._token, call, cancellation or Cancellation())

    def search_many(
        self,
        requests: Iterable[SearchRequest],
        *,
        in_flight_max: int = _in_flight_default,
        idempotency_key: Callable[[SearchRequest, int], str] | None = None,
    ) -> Iterator[Outcome]:
        """Runs searches, a few at once and within the rate window, and yields each as it ends, also one that fails.

        With keys that a second run makes again, that run pays for nothing that this one has paid. When none of the rest
        could succeed, it starts no more, yields those that run, and raises the error.
        """
        return self._outcomes(requests, queue.SimpleQueue(), in_flight_max, idempotency_key)

    def _outcomes(
        self,
        requests: Iterable[SearchRequest],
        ended: queue.SimpleQueue[tuple[SearchRequest, int, Any] | None],
        in_flight_max: int = _in_flight_default,
        idempotency_key: Callable[[SearchRequest, int], str] | None = None,
    ) -> Iterator[Outcome]:
        """What `search_many` yields. None in the queue ends it from another thread."""
        cancellations: dict[int, Cancellation] = {}
        window = RateWindow()

        def run(request: SearchRequest, index: int, cancellation: Cancellation) -> None:
            try:
                window.wait_and_count(cancellation.event)
                key = idempotency_key(request, index) if idempotency_key else None
                reply = self.search_with_response(request, idempotency_key=key, cancellation=cancellation)
                window.read(reply.headers, index + 1)
                ended.put((request, index, reply.data))
            except BaseException as error:
                ended.put((request, index, error))

        source = enumerate(requests)
        fatal: SerpmillError | None = None
        is_last = False
        done = 0
        try:
            while True:
                while not is_last and len(cancellations) < in_flight_max:
                    index, request = next(source, (-1, None))
                    if request is None:
                        is_last = True
                        break
                    cancellations[index] = Cancellation()
                    threading.Thread(target=run, args=(request, index, cancellations[index]), daemon=True).start()
                if not cancellations:
                    break
                next_ended = ended.get()
                if next_ended is None:
                    return
                request, index, result = next_ended
                del cancellations[index]
                done += 1
                if isinstance(result, SerpmillError):
                    if _ends_all(result):
                        fatal, is_last = fatal or result, True
                    yield Outcome(request, index, None, result, done)
                elif isinstance(result, BaseException):
                    raise result
                else:
                    yield Outcome(request, index, result, None, done)
            if fatal:
                raise fatal
        finally:
            for cancellation in cancellations.values():
                cancellation.cancel()

    def _limits(self, deadline_s: float | None, max_retries: int | None) -> tuple[float, int]:
        deadline_s = self._deadline_s if deadline_s is None else deadline_s
        max_retries = self._max_retries if max_retries is None else max_retries
        if not 0 < deadline_s <= _deadline_s_max:
            raise ValueError(f"Expected a `deadline_s` above 0, up to {_deadline_s_max:.0f}. Got {deadline_s}.")
        if max_retries < 0:
            raise ValueError(f"Expected a whole number from 0 as `max_retries`. Got {max_retries}.")
        return deadline_s, max_retries


def _ends_all(error: SerpmillError) -> bool:
    if error.code == "plan_required":
        return "maxDepth" not in error.details
    return error.code in ("aborted", "unauthenticated", "out_of_credits", "unexpected_reply")


class AsyncSerpmill:
    """The same client for asyncio. Each call runs in a thread. A task that is cancelled ends its call."""

    def __init__(self, *args: Any, in_flight_max: int = 100, **options: Any) -> None:
        self._client = Serpmill(*args, **options)
        self._threads = ThreadPoolExecutor(in_flight_max, thread_name_prefix="serpmill")

    async def search(self, request: SearchRequest, **options: Any) -> SearchAnswer:
        return (await self.search_with_response(request, **options)).data

    async def search_with_response(self, request: SearchRequest, **options: Any) -> Reply[SearchAnswer]:
        return await self._run(self._client.search_with_response, request, **options)

    async def usage(self, **options: Any) -> Usage:
        return (await self._run(self._client.usage_with_response, **options)).data

    async def search_many(self, requests: Iterable[SearchRequest], **options: Any) -> AsyncIterator[Outcome]:
        ended: queue.SimpleQueue[tuple[SearchRequest, int, Any] | None] = queue.SimpleQueue()
        outcomes = self._client._outcomes(requests, ended, **options)
        running: Future[Outcome | None] | None = None
        try:
            while True:
                running = self._threads.submit(next, outcomes, None)
                outcome = await asyncio.wrap_future(running)
                if outcome is None:
                    return
                yield outcome
        finally:
            # A task that is cancelled leaves the thread of `next` behind, which waits for a search to end.
            ended.put(None)
            if running:
                await asyncio.to_thread(wait, [running])
            outcomes.close()  # type: ignore[attr-defined]

    async def _run(self, call: Callable[..., Reply[Any]], *args: Any, **options: Any) -> Reply[Any]:
        cancellation = Cancellation()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, lambda: call(*args, cancellation=cancellation, **options))
        try:
            return await future
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
