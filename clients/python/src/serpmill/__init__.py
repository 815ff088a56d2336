"""The client of the Serpmill search API. A search is charged once, however often it has to be repeated."""

from .async_client import AsyncSerpmill
from .call import Cancellation
from .client import Serpmill
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
from .schema import (
    CompactResult,
    CompactSearchAnswer,
    CompactSearchRequest,
    Result,
    SearchAnswer,
    SearchRequest,
    Usage,
)
from .search_many import Answered, Failed, Outcome, Progress

__all__ = [
    "AbortedError",
    "Answered",
    "AsyncSerpmill",
    "BadRequestError",
    "Cancellation",
    "CompactResult",
    "CompactSearchAnswer",
    "CompactSearchRequest",
    "EngineError",
    "EngineTimeoutError",
    "Failed",
    "InternalError",
    "LostReplyError",
    "NotImplementedByApiError",
    "OutOfCreditsError",
    "Outcome",
    "PlanRequiredError",
    "Progress",
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
