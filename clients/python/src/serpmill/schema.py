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
    format: Literal["full", "compact"]


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
    searchedKeyword: str


class _SearchAnswerAlways(TypedDict):
    requestId: str
    query: Query
    creditsCharged: int
    creditsRemaining: int
    totalResultsCount: int
    results: list[Result]


class SearchAnswer(_SearchAnswerAlways, total=False):
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
