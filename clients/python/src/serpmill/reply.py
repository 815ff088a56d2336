"""Reads the response to one request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Generic, Mapping, TypeVar
from urllib.parse import urljoin
import re

from .errors import SerpmillError, error_of

Answer = TypeVar("Answer")

# With these the API has run no search for this request. With another one it may have.
_refused_before = {"no_workers", "queue_too_long", "shutting_down", "token_lookups_full"}


@dataclass
class Reply(Generic[Answer]):
    """An answer with what came around it. `is_replay`: an earlier request under the same key had paid for it."""

    data: Answer
    status: int
    headers: Mapping[str, str]
    request_id: str
    is_replay: bool
    idempotency_key: str | None = None
    attempts: int = 1


def read_reply(status: int, headers: Mapping[str, str], body: bytes, url: str, answer_field: str) -> Reply[Any]:
    """Reads a whole response, with the names of its headers in lower case. An answer has the given field.

    Raises SerpmillError for everything else.
    """
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    is_success = 200 <= status < 300
    if is_success and isinstance(parsed, dict) and answer_field in parsed:
        is_replay = headers.get("idempotency-replayed") == "true"
        return Reply(parsed, status, headers, headers.get("x-request-id", ""), is_replay)
    about = {
        "status": status,
        "request_id": headers.get("x-request-id"),
        "retry_after_s": _retry_after_s(headers),
    }
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if not is_success and isinstance(error, dict) and isinstance(error.get("code"), str):
        raise _error_of_api(error, url, headers, about)
    # A proxy's own error, or an answer that something on the way has changed. Of a 2xx or 5xx it may hide that the search was charged.
    is_unknown = is_success or status >= 500
    raise error_of(
        "lost_reply" if is_unknown else "unexpected_reply",
        f"Expected an answer of Serpmill; got HTTP {status}, which is not one. Check the address of the API.",
        details={"text": body[:200].decode("utf-8", "replace")},
        may_be_charged=is_unknown,
        can_repeat=is_unknown or status == 429,
        **about,
    )


def _error_of_api(error: dict[str, Any], url: str, headers: Mapping[str, str], about: dict[str, Any]) -> SerpmillError:
    code, details = error["code"], error.get("details")
    details = details if isinstance(details, dict) else {}
    can_repeat, may_be_charged = _verdict(about["status"], code, details.get("reason"))
    link = re.search(r'<([^>]*)>;\s*rel="?help"?', headers.get("link", ""))
    return error_of(
        code,
        str(error.get("message")),
        details=details,
        help=urljoin(url, link[1]) if link else None,
        can_repeat=can_repeat,
        may_be_charged=may_be_charged,
        **about,
    )


def _verdict(status: int, code: str, reason: object) -> tuple[bool, bool]:
    """Whether a repeat can help, and whether the search may have been charged."""
    if code in ("rate_limited", "internal_error"):
        return True, False
    if code == "engine_error":
        return reason != "provider_refused", False
    if code == "unavailable":
        return True, reason not in _refused_before
    # `engine_timeout`, and what a newer API may add.
    is_unknown = status >= 500 and status != 501
    return is_unknown, is_unknown


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """`Retry-After` in seconds, or as a date, which is read against the server's own clock."""
    value = headers.get("retry-after", "")
    if value.isdecimal():
        return float(value)
    try:
        pause = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, pause.total_seconds())
