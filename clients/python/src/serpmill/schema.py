"""Generated from the OpenAPI document by `npm run clients`."""

from __future__ import annotations

from typing import Literal, TypedDict


class _SearchRequestAlways(TypedDict):
    keyword: str


class SearchRequest(_SearchRequestAlways, total=False):
    engine: str
    location: str
    language: str
    device: Literal["desktop", "mobile"]
    depth: int
    targetDomain: str
    types: list[Literal["organic", "paid", "featured_snippet", "answer_box", "ai_overview", "knowledge_graph", "people_also_ask", "local_pack", "top_stories", "video", "images", "shopping", "discussions", "related_searches", "other"]]
    format: Literal["full"]
    maxAgeSeconds: int
    include: list[Literal["fetchedAt", "answeredBy"]]


class _CompactSearchRequestAlways(TypedDict):
    keyword: str
    format: Literal["compact"]


class CompactSearchRequest(_CompactSearchRequestAlways, total=False):
    engine: str
    location: str
    language: str
    device: Literal["desktop", "mobile"]
    depth: int
    targetDomain: str
    types: list[Literal["organic", "paid", "featured_snippet", "answer_box", "ai_overview", "knowledge_graph", "people_also_ask", "local_pack", "top_stories", "video", "images", "shopping", "discussions", "related_searches", "other"]]
    maxAgeSeconds: int
    include: list[Literal["fetchedAt", "answeredBy"]]


class SiteLink(TypedDict):
    title: str
    url: str
    description: str


class ResultRichSnippet(TypedDict):
    top: list[str]
    bottom: list[str]


class Result(TypedDict):
    type: Literal["organic", "paid", "featured_snippet", "answer_box", "ai_overview", "knowledge_graph", "people_also_ask", "local_pack", "top_stories", "video", "images", "shopping", "discussions", "related_searches", "other"]
    rank: int
    title: str
    url: str
    domain: str
    breadcrumb: str
    description: str
    richSnippet: ResultRichSnippet
    siteLinks: list[SiteLink]


class _QueryAlways(TypedDict):
    keyword: str
    engine: str
    location: str
    language: str
    device: Literal["desktop", "mobile"]
    depth: int


class Query(_QueryAlways, total=False):
    targetDomain: str
    types: list[Literal["organic", "paid", "featured_snippet", "answer_box", "ai_overview", "knowledge_graph", "people_also_ask", "local_pack", "top_stories", "video", "images", "shopping", "discussions", "related_searches", "other"]]
    maxAgeSeconds: int
    include: list[Literal["fetchedAt", "answeredBy"]]
    searchedKeyword: str


class _SearchAnswerAlways(TypedDict):
    requestId: str
    query: Query
    creditsCharged: int
    creditsRemaining: int
    totalResultsCount: int
    results: list[Result]


class SearchAnswer(_SearchAnswerAlways, total=False):
    fetchedAt: str
    answeredBy: str
    truncated: Literal[True]


class _CompactQueryAlways(TypedDict):
    keyword: str
    engine: str
    location: str
    language: str
    device: Literal["desktop", "mobile"]
    depth: int
    format: Literal["compact"]


class CompactQuery(_CompactQueryAlways, total=False):
    targetDomain: str
    maxAgeSeconds: int
    include: list[Literal["fetchedAt", "answeredBy"]]
    searchedKeyword: str


class CompactResult(TypedDict):
    title: str
    url: str
    description: str


class _CompactSearchAnswerAlways(TypedDict):
    requestId: str
    query: CompactQuery
    creditsCharged: int
    creditsRemaining: int
    results: list[CompactResult]


class CompactSearchAnswer(_CompactSearchAnswerAlways, total=False):
    fetchedAt: str
    answeredBy: str
    truncated: Literal[True]


class UsageLimits(TypedDict):
    scope: Literal["organization", "token"]
    period: Literal["day", "month"]
    limitMils: int
    spentMils: int
    heldMils: int
    renewsAt: str


class _UsageAlways(TypedDict):
    creditBalanceMils: int
    plan: str


class Usage(_UsageAlways, total=False):
    pricePerPageMils: int
    maxDepth: int
    limits: list[UsageLimits]


class BadRequestDetailsIssues(TypedDict):
    path: str
    message: str


class BadRequestDetails(TypedDict, total=False):
    issues: list[BadRequestDetailsIssues]
    reason: Literal["body_missing", "body_not_json", "body_not_utf8", "body_too_large", "body_unreadable", "content_type_not_json", "content_encoding_unsupported", "charset_not_utf8", "json_not_accepted", "idempotency_key_reused", "malformed_http", "one_host_header_expected", "too_many_headers", "headers_too_large", "transfer_encoding_not_chunked", "expectation_unknown", "request_too_slow"]


class _QueryRejectedDetailsAlways(TypedDict):
    reason: Literal["unsupported", "refused_by_provider", "location_unknown", "location_ambiguous"]
    field: Literal["keyword", "location", "language", "device"]


class QueryRejectedDetails(_QueryRejectedDetailsAlways, total=False):
    candidates: list[str]


class UnauthenticatedDetails(TypedDict, total=False):
    reason: Literal["scope"]
    scope: Literal["search", "usage", "billing"]


class _PlanRequiredDetailsAlways(TypedDict):
    plan: str
    action: Literal["upgrade", "contact_operator"]


class PlanRequiredDetails(_PlanRequiredDetailsAlways, total=False):
    reason: Literal["suspended", "max_depth"]
    maxDepth: int


class _OutOfCreditsDetailsAlways(TypedDict):
    priceMils: int
    availableMils: int
    heldMils: int
    action: Literal["topup", "raise_limit"]
    topupUrl: str


class OutOfCreditsDetails(_OutOfCreditsDetailsAlways, total=False):
    reason: Literal["daily_limit", "monthly_limit", "token_limit"]
    period: Literal["day", "month"]
    limitMils: int
    renewsAt: str


class _RateLimitedDetailsAlways(TypedDict):
    reason: Literal["window", "concurrency", "unpaid_calls", "unread", "refused"]
    retryAfterMs: int
    limit: int


class RateLimitedDetails(_RateLimitedDetailsAlways, total=False):
    windowSeconds: int


class NotImplementedDetails(TypedDict):
    engine: str
    supported: list[str]


class EngineErrorDetails(TypedDict):
    reason: Literal["provider_unavailable", "provider_refused", "unreadable_answer"]


class UnavailableDetails(TypedDict):
    reason: Literal["redis_unreachable", "postgres_unreachable", "token_lookups_full", "no_workers", "queue_too_long", "shutting_down", "balance_unreadable"]
    retryAfterMs: int


class EngineTimeoutDetails(TypedDict):
    timeoutMs: int
