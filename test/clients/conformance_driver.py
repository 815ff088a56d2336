"""Makes calls of the conformance file with the Python client, all at once, and prints how each ended as JSON."""

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "clients/python/src"))

from serpmill import AsyncSerpmill, Serpmill, SerpmillError

kind, given, clock_jump_ms = sys.argv[1:]
tasks = json.loads(given)
for each in tasks:
    each["request"]["keyword"] = each["request"]["keyword"].ljust(each["keywordCharacters"], "a")
read_clock, reads = time.time, 0


def jumping() -> float:
    global reads
    reads += 1
    return read_clock() + reads * int(clock_jump_ms) / 1000


time.time = jumping


def options_of(task: dict) -> dict:
    return {
        "token": task["options"]["token"],
        "base_url": task["options"]["baseURL"],
        "deadline_s": task["options"]["deadlineMs"] / 1000,
        "max_retries": task["options"].get("maxRetries", 4),
    }


def call(task: dict) -> dict:
    client = Serpmill(**options_of(task))
    if task["call"] == "many":
        return {"answers": sum(outcome.answer is not None for outcome in client.search_many(task["requests"]))}
    is_usage = task["call"] == "usage"
    reply = client.usage_with_response() if is_usage else client.search_with_response(task["request"])
    return {"answers": 1, "isReplay": reply.is_replay, "attempts": reply.attempts}


async def call_async(task: dict) -> dict:
    client = AsyncSerpmill(**options_of(task))
    if task["call"] == "many":
        return {"answers": len([True async for outcome in client.search_many(task["requests"]) if outcome.answer])}
    is_usage = task["call"] == "usage"
    reply = await (client.usage_with_response() if is_usage else client.search_with_response(task["request"]))
    return {"answers": 1, "isReplay": reply.is_replay, "attempts": reply.attempts}


def describe(task: dict, error: BaseException) -> dict:
    if not isinstance(error, SerpmillError):
        raise error
    fetched = None
    if "api" in task and error.may_be_charged:
        direct = Serpmill(task["options"]["token"], task["api"], 30)
        paid = direct.search_with_response(task["request"], idempotency_key=error.idempotency_key)
        fetched = paid.is_replay
    ended = {"answers": 0, "error": error.code, "fetched": fetched}
    return {**ended, "mayBeCharged": error.may_be_charged, "key": error.idempotency_key, "attempts": error.attempts}


def run(task: dict) -> dict:
    try:
        return call(task)
    except SerpmillError as failure:
        return describe(task, failure)


async def run_all_async() -> list[dict]:
    ended = await asyncio.gather(*map(call_async, tasks), return_exceptions=True)
    return [describe(task, one) if isinstance(one, BaseException) else one for task, one in zip(tasks, ended)]


if kind == "async":
    outcomes = asyncio.run(run_all_async())
else:
    with ThreadPoolExecutor(len(tasks)) as pool:
        outcomes = list(pool.map(run, tasks))
print(json.dumps(outcomes))
