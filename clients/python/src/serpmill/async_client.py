"""The client `AsyncSerpmill`: the same as `Serpmill`, over threads."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, overload

from .call import Cancellation
from .client import Serpmill
from .options import CallOptions, SearchOptions, Unpack
from .reply import Reply
from .schema import CompactSearchAnswer, CompactSearchRequest, SearchAnswer, SearchRequest, Usage
from .search_many import AnyRequest, Ended, Outcome


class AsyncSerpmill:
    """The same client for asyncio. Each call runs in a thread. A task that is cancelled ends its call.

    A search that was sent goes on nevertheless, and is charged if it succeeds. A cancelled task cannot tell its key, so give
    an `idempotency_key` to a search that may be cancelled, or a `deadline_s` in place of `asyncio.wait_for`.
    in_flight_max: the most calls at once; more of them wait. The other options are those of `Serpmill`.
    """

    def __init__(
        self,
        token: str | None = None,
        base_url: str | None = None,
        *,
        in_flight_max: int = 100,
        **options: Unpack[CallOptions],
    ) -> None:
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        self._client = Serpmill(token, base_url, **given)
        self._threads = ThreadPoolExecutor(in_flight_max, thread_name_prefix="serpmill")

    @overload
    async def search(self, request: CompactSearchRequest, **options: Unpack[SearchOptions]) -> CompactSearchAnswer: ...
    @overload
    async def search(self, request: SearchRequest, **options: Unpack[SearchOptions]) -> SearchAnswer: ...
    async def search(self, request: AnyRequest, **options: Any) -> Any:
        """Runs a search. It is charged once, however often it has to be repeated. Raises SerpmillError."""
        return (await self._run(self._client.search_with_response, request, **options)).data

    @overload
    async def search_with_response(
        self, request: CompactSearchRequest, **options: Unpack[SearchOptions]
    ) -> Reply[CompactSearchAnswer]: ...
    @overload
    async def search_with_response(
        self, request: SearchRequest, **options: Unpack[SearchOptions]
    ) -> Reply[SearchAnswer]: ...
    async def search_with_response(self, request: AnyRequest, **options: Any) -> Reply[Any]:
        """The same, with headers, ids and the number of attempts."""
        return await self._run(self._client.search_with_response, request, **options)

    async def usage(self, **options: Unpack[CallOptions]) -> Usage:
        """Reads the available credit, the plan and the limits. It costs nothing. Raises SerpmillError."""
        return (await self.usage_with_response(**options)).data

    async def usage_with_response(self, **options: Unpack[CallOptions]) -> Reply[Usage]:
        """The same, with headers and the number of attempts."""
        return await self._run(self._client.usage_with_response, **options)

    @overload
    def search_many(
        self,
        requests: Iterable[SearchRequest],
        *,
        in_flight_max: int = ...,
        idempotency_key: Callable[[SearchRequest, int], str] | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Outcome[SearchAnswer], None]: ...
    @overload
    def search_many(
        self,
        requests: Iterable[CompactSearchRequest],
        *,
        in_flight_max: int = ...,
        idempotency_key: Callable[[CompactSearchRequest, int], str] | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Outcome[CompactSearchAnswer], None]: ...
    async def search_many(self, requests: Iterable[Any], **options: Any) -> AsyncGenerator[Outcome[Any], None]:
        """Runs searches like `Serpmill.search_many`, and yields each as it ends."""
        ended: Ended = queue.SimpleQueue()
        outcomes = self._client._outcomes(requests, ended, **options)  # pyright: ignore[reportPrivateUsage]
        running: Future[Outcome[Any] | None] | None = None
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
            outcomes.close()

    async def _run(self, call: Callable[..., Reply[Any]], *args: Any, **options: Any) -> Reply[Any]:
        cancellation = Cancellation()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, lambda: call(*args, cancellation=cancellation, **options))
        try:
            return await future
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
