"""The options of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack
else:  # Python 3.10 has no `Unpack`. Only checkers of types need it.
    from typing import Optional as Unpack

__all__ = ["CallOptions", "SearchOptions", "Unpack"]


class CallOptions(TypedDict, total=False):
    """Those of the client apply where an option is missing or None.

    deadline_s: the most time for one call with its repeats, in seconds; at most 12 hours.
    max_retries: how often a call is repeated that was certainly not charged. 0: no call is ever repeated.
    """

    deadline_s: float | None
    max_retries: int | None


class SearchOptions(CallOptions, total=False):
    """idempotency_key: the key of this search in place of a random one: 1 to 255 visible ASCII characters."""

    idempotency_key: str | None
