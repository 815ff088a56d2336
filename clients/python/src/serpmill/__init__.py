"""The client of the Serpmill search API. A search is charged once, however often it has to be repeated."""

from .call import Cancellation
from .client import AsyncSerpmill, Outcome, Serpmill
from .errors import (
    AbortedError,
    BadRequestError,
    EngineError,
    EngineTimeoutError,
    InternalError,
    LostReplyError,
    NotImplementedByApiError,
    OutOfCreditsError,
    PlanRequiredError,
    QueryRejectedError,
    RateLimitedError,
    SerpmillError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedReplyError,
)
from .reply import Reply
from .schema import Result, SearchAnswer, SearchRequest, Usage

__all__ = [
    "AbortedError",
    "AsyncSerpmill",
    "BadRequestError",
    "Cancellation",
    "EngineError",
    "EngineTimeoutError",
    "InternalError",
    "LostReplyError",
    "NotImplementedByApiError",
    "OutOfCreditsError",
    "Outcome",
    "PlanRequiredError",
    "QueryRejectedError",
    "RateLimitedError",
    "Reply",
    "Result",
    "SearchAnswer",
    "SearchRequest",
    "Serpmill",
    "SerpmillError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnexpectedReplyError",
    "Usage",
]
