"""The errors of the client: one class for each code."""

from __future__ import annotations

import copyreg
from typing import Any

from .schema import (
    BadRequestDetails,
    EngineErrorDetails,
    EngineTimeoutDetails,
    NotImplementedDetails,
    OutOfCreditsDetails,
    PlanRequiredDetails,
    QueryRejectedDetails,
    RateLimitedDetails,
    UnauthenticatedDetails,
    UnavailableDetails,
)

_classes: dict[str, type[SerpmillError]] = {}


class SerpmillError(Exception):
    """Any failure of a call. Its subclasses stand for one code each.

    may_be_charged: whether the search may have been charged although its answer did not arrive. Then repeat it under
        `idempotency_key` within 24 hours: if it was charged, the repeat returns the answer and costs nothing.
    can_repeat: whether a repeat can succeed.
    details: fields that depend on the code. A subclass declares which.
    help: the address of the section about this error in the API's reference.
    """

    def __init_subclass__(cls, code: str = "") -> None:
        super().__init_subclass__()
        if code:
            _classes[code] = cls

    def __init__(
        self,
        code: str,
        message: str,
        *,
        can_repeat: bool,
        may_be_charged: bool,
        details: dict[str, Any] | None = None,
        status: int | None = None,
        request_id: str | None = None,
        help: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: dict[str, Any] = details or {}
        self.status = status
        self.request_id = request_id
        self.help = help
        self.retry_after_s = retry_after_s
        self.can_repeat = can_repeat
        self.may_be_charged = may_be_charged
        self.idempotency_key: str | None = None
        self.attempts = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """So that it can leave a process of a pool, with its key."""
        return copyreg.__newobj__, (type(self), self.message), self.__dict__  # type: ignore[attr-defined]


class BadRequestError(SerpmillError, code="bad_request"):
    details: BadRequestDetails  # type: ignore[assignment]


class QueryRejectedError(SerpmillError, code="query_rejected"):
    details: QueryRejectedDetails  # type: ignore[assignment]


class UnauthenticatedError(SerpmillError, code="unauthenticated"):
    details: UnauthenticatedDetails  # type: ignore[assignment]


class PlanRequiredError(SerpmillError, code="plan_required"):
    details: PlanRequiredDetails  # type: ignore[assignment]


class OutOfCreditsError(SerpmillError, code="out_of_credits"):
    """`details` say what ran out: `availableMils` and `topupUrl`, or the `limitMils` of a `period` that renews at `renewsAt`."""

    details: OutOfCreditsDetails  # type: ignore[assignment]


class RateLimitedError(SerpmillError, code="rate_limited"):
    details: RateLimitedDetails  # type: ignore[assignment]


class InternalError(SerpmillError, code="internal_error"):
    pass


class NotImplementedByApiError(SerpmillError, code="not_implemented"):
    details: NotImplementedDetails  # type: ignore[assignment]


class EngineError(SerpmillError, code="engine_error"):
    details: EngineErrorDetails  # type: ignore[assignment]


class UnavailableError(SerpmillError, code="unavailable"):
    details: UnavailableDetails  # type: ignore[assignment]


class EngineTimeoutError(SerpmillError, code="engine_timeout"):
    details: EngineTimeoutDetails  # type: ignore[assignment]


class LostReplyError(SerpmillError, code="lost_reply"):
    """No whole answer came: the connection failed, the time was up, or the answer was unreadable."""


class UnexpectedReplyError(SerpmillError, code="unexpected_reply"):
    """The answer is not one of this API's. Usually the address leads to another server."""


class AbortedError(SerpmillError, code="aborted"):
    """The caller ended the call."""


def error_of(code: str, message: str, **facts: Any) -> SerpmillError:
    """The error of the class of its code. A code that a newer API added gets the base class."""
    return _classes.get(code, SerpmillError)(code, message, **facts)
