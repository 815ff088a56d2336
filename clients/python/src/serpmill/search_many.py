"""Runs many searches, a few at once and within the rate window."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, Union

from .call import Cancellation
from .errors import SerpmillError
from .reply import Reply
from .schema import CompactSearchRequest, SearchRequest

AnyRequest = Union[SearchRequest, CompactSearchRequest]
Answer = TypeVar("Answer")

in_flight_default = 5  # The searches in flight that the plan `free` allows.


@dataclass(frozen=True)
class Progress:
    """How many searches have ended by now, how many of them failed, and how many run."""

    done: int
    failed: int
    in_flight: int


@dataclass(frozen=True)
class Answered(Generic[Answer]):
    """One of many searches that ended with an answer. `index` is the request's position, from 0.

    `is_replay`: an earlier request under the same key had paid for it.
    """

    request: AnyRequest
    index: int
    answer: Answer
    is_replay: bool
    progress: Progress
    error: None = None


@dataclass(frozen=True)
class Failed:
    """One of many searches that ended with an error. `index` is the request's position, from 0."""

    request: AnyRequest
    index: int
    error: SerpmillError
    progress: Progress
    answer: None = None


# How one of many searches ended. `outcome.error is None` tells a checker of types that there is an answer.
Outcome = Union[Answered[Answer], Failed]


# What a search brought, the error that it raised, or None if it did not start. None ends the searches from another thread.
Ended = queue.SimpleQueue[Union[tuple[AnyRequest, int, Union[Reply[Any], BaseException, None]], None]]


class RateWindow:
    """What is left of the organization's rate window, as the newest answer told it, less what was started since."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._started = 0
        self._left = float("inf")
        self._ends_at = 0.0

    def stop(self) -> None:
        """From now on no search may start."""
        self._stopped.set()

    def wait_and_count(self) -> bool:
        """Waits while the window is used up, and counts a search that starts now. Returns whether it may start."""
        while not self._stopped.is_set():
            with self._lock:
                wait_s = 0.0 if self._left > 0 else self._ends_at - time.monotonic()
                if wait_s <= 0:
                    self._started += 1
                    self._left -= 1
                    return True
            self._stopped.wait(wait_s)
        return False

    def read(self, headers: Mapping[str, str], number: int) -> None:
        """Reads the state that the answer to the search with this number has, from 1."""
        state = re.search(r"r=(\d+);t=(\d+)", headers.get("ratelimit", ""))
        if state:
            with self._lock:
                self._left = int(state[1]) - max(0, self._started - number)
                self._ends_at = time.monotonic() + int(state[2])


def search_many(
    search: Callable[[AnyRequest, str | None, Cancellation], Reply[Any]],
    requests: Iterable[tuple[AnyRequest, str | None]],
    in_flight_max: int,
    ended: Ended,
    has_own_keys: bool,
) -> Generator[Outcome[Any], None, None]:
    """Yields each search as it ends. When none of the rest could succeed, raises the error after those that run.

    So does an error of the caller's own code, which has the requests with their keys.
    """
    cancellations: dict[int, Cancellation] = {}
    window = RateWindow()

    def run(request: AnyRequest, index: int, key: str | None, cancellation: Cancellation) -> None:
        try:
            reply = search(request, key, cancellation) if window.wait_and_count() else None
            if reply:
                window.read(reply.headers, index + 1)
            ended.put((request, index, reply))
        except BaseException as error:
            ended.put((request, index, error))

    fatal: BaseException | None = None

    def stop(error: BaseException) -> None:
        nonlocal fatal
        fatal = fatal or error
        window.stop()

    source = enumerate(requests)
    is_last = False
    done = failed = 0
    try:
        while True:
            while not is_last and not fatal and len(cancellations) < in_flight_max:
                try:
                    index, (request, key) = next(source)
                except StopIteration:
                    is_last = True
                    break
                except Exception as failure:
                    stop(failure)
                    break
                cancellations[index] = Cancellation()
                threading.Thread(target=run, args=(request, index, key, cancellations[index]), daemon=True).start()
            if not cancellations:
                break
            next_ended = ended.get()
            if next_ended is None:
                return
            request, index, result = next_ended
            del cancellations[index]
            error = result if isinstance(result, SerpmillError) else None
            if isinstance(result, BaseException) and (error is None or _ends_all(error, has_own_keys, done > failed)):
                stop(result)
            if result is None or (isinstance(result, BaseException) and error is None):
                continue
            done += 1
            failed += 1 if error else 0
            progress = Progress(done, failed, len(cancellations))
            if isinstance(result, Reply):
                yield Answered(request, index, result.data, result.is_replay, progress)
            elif error:
                yield Failed(request, index, error, progress)
        if fatal:
            raise fatal
    finally:
        window.stop()
        for cancellation in cancellations.values():
            cancellation.cancel()


def _ends_all(error: SerpmillError, has_own_keys: bool, has_answers: bool) -> bool:
    if error.code == "plan_required":
        return "maxDepth" not in error.details
    if error.code == "out_of_credits":  # Those can still succeed that an earlier run paid under the caller's own keys.
        return not has_own_keys
    if error.code in ("unexpected_reply", "not_found", "method_not_allowed"):
        return not has_answers  # Otherwise it is about this one search, and not about the address.
    return error.code in ("aborted", "unauthenticated")
