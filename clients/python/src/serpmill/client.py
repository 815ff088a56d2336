"""The client `Serpmill`."""

from __future__ import annotations

import json
import os
import queue
import re
import uuid
from collections.abc import Callable, Generator, Iterable
from typing import Any, overload
from urllib.parse import urlsplit

from .call import Api, Call, Cancellation, send
from .options import CallOptions, SearchOptions, Unpack
from .reply import Reply
from .schema import CompactSearchAnswer, CompactSearchRequest, SearchAnswer, SearchRequest, Usage
from .search_many import AnyRequest, Ended, Outcome, in_flight_default, search_many

_deadline_s_default = 90.0  # Two whole searches, and a third that only fetches what they paid.
_deadline_s_max = 12 * 3_600.0  # Far within the 24 hours for which the API keeps a paid answer under its key.
_max_retries_default = 4


class Serpmill:
    """A client of one API. Each search has one Idempotency-Key, which all its repeats share, so no search is charged twice.

    token, base_url: `SERPMILL_TOKEN` and `SERPMILL_URL` of the environment by default.
    deadline_s: the most time for one call with its repeats, in seconds; at most 12 hours.
    max_retries: how often a call is repeated that was certainly not charged. A search that may have been charged,
        or waits for others of the organization, is repeated until the deadline. 0: no call is ever repeated.
    Raises ValueError if token or address are missing or not valid.
    """

    def __init__(
        self,
        token: str | None = None,
        base_url: str | None = None,
        deadline_s: float = _deadline_s_default,
        max_retries: int = _max_retries_default,
    ) -> None:
        # A file of settings may end its lines with CRLF.
        token = (os.environ.get("SERPMILL_TOKEN", "") if token is None else token).strip()
        base_url = (os.environ.get("SERPMILL_URL", "") if base_url is None else base_url).strip()
        if not re.fullmatch(r"[!-~]+", token):
            raise ValueError("Expected a token in `token` or SERPMILL_TOKEN.")
        if not _is_address(base_url):
            # What was given instead may be a secret.
            raise ValueError("Expected the API's address, https://…, in `base_url` or SERPMILL_URL.")
        self._api = Api(base_url.rstrip("/"), token)
        self._deadline_s = deadline_s
        self._max_retries = max_retries
        self._limits(None, None)

    @overload
    def search(
        self,
        request: CompactSearchRequest,
        *,
        cancellation: Cancellation | None = None,
        **options: Unpack[SearchOptions],
    ) -> CompactSearchAnswer: ...
    @overload
    def search(
        self, request: SearchRequest, *, cancellation: Cancellation | None = None, **options: Unpack[SearchOptions]
    ) -> SearchAnswer: ...
    def search(self, request: AnyRequest, **options: Any) -> Any:
        """Runs a search. It is charged once, however often it has to be repeated. Raises SerpmillError."""
        return self.search_with_response(request, **options).data

    @overload
    def search_with_response(
        self,
        request: CompactSearchRequest,
        *,
        cancellation: Cancellation | None = None,
        **options: Unpack[SearchOptions],
    ) -> Reply[CompactSearchAnswer]: ...
    @overload
    def search_with_response(
        self, request: SearchRequest, *, cancellation: Cancellation | None = None, **options: Unpack[SearchOptions]
    ) -> Reply[SearchAnswer]: ...
    def search_with_response(
        self,
        request: AnyRequest,
        *,
        idempotency_key: str | None = None,
        deadline_s: float | None = None,
        max_retries: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> Reply[Any]:
        """The same, with headers, ids and the number of attempts."""
        deadline_s, max_retries = self._limits(deadline_s, max_retries)
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        if not re.fullmatch(r"[!-~]{1,255}", key):
            raise ValueError(f"Expected 1 to 255 visible ASCII characters as `idempotency_key`. Got {key!r}.")
        body = json.dumps(request).encode()
        call = Call("POST", "/v1/serp/search", "results", deadline_s, max_retries, body, key)
        return send(self._api, call, cancellation or Cancellation())

    def usage(self, *, cancellation: Cancellation | None = None, **options: Unpack[CallOptions]) -> Usage:
        """Reads the available credit, the plan and the limits. It costs nothing. Raises SerpmillError."""
        return self.usage_with_response(cancellation=cancellation, **options).data

    def usage_with_response(
        self,
        *,
        deadline_s: float | None = None,
        max_retries: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> Reply[Usage]:
        """The same, with headers and the number of attempts."""
        call = Call("GET", "/v1/usage", "creditBalanceMils", *self._limits(deadline_s, max_retries))
        return send(self._api, call, cancellation or Cancellation())

    @overload
    def search_many(
        self,
        requests: Iterable[SearchRequest],
        *,
        in_flight_max: int = ...,
        idempotency_key: Callable[[SearchRequest, int], str] | None = None,
        **options: Unpack[CallOptions],
    ) -> Generator[Outcome[SearchAnswer], None, None]: ...
    @overload
    def search_many(
        self,
        requests: Iterable[CompactSearchRequest],
        *,
        in_flight_max: int = ...,
        idempotency_key: Callable[[CompactSearchRequest, int], str] | None = None,
        **options: Unpack[CallOptions],
    ) -> Generator[Outcome[CompactSearchAnswer], None, None]: ...
    def search_many(self, requests: Iterable[Any], **options: Any) -> Generator[Outcome[Any], None, None]:
        """Runs searches, a few at once and within the rate window, and yields each as it ends, also one that fails.

        in_flight_max: how many searches run at once; 5 by default.
        idempotency_key: the key of each search. With keys that a second run makes again, that run pays for nothing that
            this one has paid.
        When none of the rest could succeed, it starts no more, yields those that run, and raises the error.
        Leaving the loop early ends the searches that run. Those already sent may be charged; give keys to fetch them.
        """
        return self._outcomes(requests, queue.SimpleQueue(), **options)

    def _outcomes(
        self,
        requests: Iterable[AnyRequest],
        ended: Ended,
        in_flight_max: int = in_flight_default,
        idempotency_key: Callable[[Any, int], str] | None = None,
        **options: Any,
    ) -> Generator[Outcome[Any], None, None]:
        """What `search_many` yields. None in the queue ends it from another thread."""
        if in_flight_max < 1:
            raise ValueError(f"Expected a whole number from 1 as `in_flight_max`. Got {in_flight_max}.")

        def search(request: Any, key: str | None, cancellation: Cancellation) -> Reply[Any]:
            return self.search_with_response(request, idempotency_key=key, cancellation=cancellation, **options)

        # The caller's code runs in the thread that asks for the next outcome, not in those of the searches.
        keyed = (
            (request, idempotency_key(request, index) if idempotency_key else None)
            for index, request in enumerate(requests)
        )
        return search_many(search, keyed, in_flight_max, ended, has_own_keys=idempotency_key is not None)

    def _limits(self, deadline_s: float | None, max_retries: int | None) -> tuple[float, int]:
        deadline_s = self._deadline_s if deadline_s is None else deadline_s
        max_retries = self._max_retries if max_retries is None else max_retries
        if not 0 < deadline_s <= _deadline_s_max:
            raise ValueError(f"Expected a `deadline_s` above 0, up to {_deadline_s_max:.0f}. Got {deadline_s}.")
        if max_retries < 0:
            raise ValueError(f"Expected a whole number from 0 as `max_retries`. Got {max_retries}.")
        return deadline_s, max_retries


def _is_address(text: str) -> bool:
    try:
        address = urlsplit(text)
        is_http = address.scheme in ("http", "https")
        is_host = bool((address.hostname or "").encode("idna")) and address.port != 0
        return is_http and is_host and address.path.isascii() and text.isprintable() and not re.search("[ @?#]", text)
    except ValueError:  # For example from `port`, above 65535, or from a host that no name can be.
        return False
