"""The client of the Serpmill search API. A search is charged once, however often it has to be repeated."""

# `X as X` tells checkers of types that the package exports X.
from .async_client import AsyncSerpmill as AsyncSerpmill
from .call import Cancellation as Cancellation
from .client import Serpmill as Serpmill
from .errors import (
    AbortedError as AbortedError,
    BadRequestError as BadRequestError,
    EngineError as EngineError,
    EngineTimeoutError as EngineTimeoutError,
    InternalError as InternalError,
    LostReplyError as LostReplyError,
    NotImplementedByApiError as NotImplementedByApiError,
    OutOfCreditsError as OutOfCreditsError,
    PlanRequiredError as PlanRequiredError,
    QueryRejectedError as QueryRejectedError,
    RateLimitedError as RateLimitedError,
    SerpmillError as SerpmillError,
    UnauthenticatedError as UnauthenticatedError,
    UnavailableError as UnavailableError,
    UnexpectedReplyError as UnexpectedReplyError,
)
from .reply import Reply as Reply
from .schema import (
    CompactResult as CompactResult,
    CompactSearchAnswer as CompactSearchAnswer,
    CompactSearchRequest as CompactSearchRequest,
    Result as Result,
    SearchAnswer as SearchAnswer,
    SearchRequest as SearchRequest,
    Usage as Usage,
)
from .search_many import Answered as Answered, Failed as Failed, Outcome as Outcome, Progress as Progress
