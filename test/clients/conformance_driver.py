"""Makes one call of the conformance file with the Python client, and prints how it ended as JSON."""

import asyncio
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "clients/python/src"))

from serpmill import AsyncSerpmill, Serpmill, SerpmillError

kind, task, *api = sys.argv[1:]
given = json.loads(task)
options = {
    "token": given["options"]["token"],
    "base_url": given["options"]["baseURL"],
    "deadline_s": given["options"]["deadlineMs"] / 1000,
    "max_retries": given["options"].get("maxRetries", 4),
}
request = {"keyword": given["keyword"]}

read_clock, reads = time.time, 0


def jumping() -> float:
    global reads
    reads += 1
    return read_clock() + (1 if reads % 2 else -1) * given["clockJumpMs"] / 1000


time.time = jumping


def run() -> dict:
    client = Serpmill(**options)
    if given["call"] == "many":
        requests = [{"keyword": f"{given['keyword']} {at}"} for at in range(given["count"])]
        return {"answers": sum(outcome.answer is not None for outcome in client.search_many(requests))}
    reply = client.usage_with_response() if given["call"] == "usage" else client.search_with_response(request)
    return {"answers": 1, "isReplay": reply.is_replay, "attempts": reply.attempts}


async def run_async() -> dict:
    client = AsyncSerpmill(**options)
    if given["call"] == "many":
        requests = [{"keyword": f"{given['keyword']} {at}"} for at in range(given["count"])]
        return {"answers": len([True async for outcome in client.search_many(requests) if outcome.answer])}
    reply = await (
        client.usage_with_response() if given["call"] == "usage" else client.search_with_response(request)
    )
    return {"answers": 1, "isReplay": reply.is_replay, "attempts": reply.attempts}


def describe(error: SerpmillError) -> dict:
    fetched = None
    if api and error.may_be_charged:
        direct = Serpmill(options["token"], api[0], 30)
        fetched = direct.search_with_response(request, idempotency_key=error.idempotency_key).is_replay
    ended = {"answers": 0, "error": error.code, "className": type(error).__name__, "fetched": fetched}
    return {**ended, "mayBeCharged": error.may_be_charged, "key": error.idempotency_key, "attempts": error.attempts}


try:
    ended = asyncio.run(run_async()) if kind == "async" else run()
except SerpmillError as failure:
    ended = describe(failure)
print(json.dumps(ended))
