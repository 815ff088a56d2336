import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Failure, Page, PageAnswer, PageRequest, Provider } from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import { generatePage } from "./generate-page.ts";

/** No shorter than the longest deadline: here only the search itself may run out of time. */
const callTimeoutMs = 120_000;

/** `sandbox:error` as a word of the keyword, and `sandbox:slow=1500` with milliseconds. */
const trigger = /(?<!\S)sandbox:(empty|slow|timeout|error|refused|garbage)(?:=(\d{1,6}))?(?!\S)/g;

/**
 * Asked and answered alike: an answer is what the page grows from, and not the page. Writing and reading its 13 kB as JSON
 * would cost more than all the rest, on what benchmarks run on.
 */
const seed = z.object({ keyword: z.string(), variant: z.string(), pageNumber: z.int() });
const seedOfPage = seed.extend({ isEmpty: z.boolean() });

/**
 * Answers every query without a network, always the same way, with sites that cannot exist (`*.example`) and every type of
 * result. It brings its own transport and is otherwise asked like everybody else, so that the triggers exercise the real
 * time-outs, retries and fail-over.
 */
export function openSandbox(): Provider {
  return {
    name: "sandbox",
    can: { mobile: true, city: true },
    callTimeoutMs,
    concurrentCallsMax: Number.POSITIVE_INFINITY,
    request: ({ keyword, location, language, device }, pageNumber) => ({
      url: "sandbox:/search",
      method: "POST",
      headers: {},
      // Depth and target domain do not count, so that a deeper search begins with the same first page.
      body: JSON.stringify({ keyword, variant: `${location}\n${language}\n${device}`, pageNumber }),
    }),
    read: readSandbox,
    transport: answerLocally,
  };
}

function readSandbox(answer: PageAnswer): Page | Failure {
  if (answer.status === 403) return { failure: "account_refused" };
  if (answer.status >= 500) return { failure: "unavailable" };
  const read = seedOfPage.safeParse(parseJson(answer.body));
  if (!read.success) return { failure: "unreadable" };
  const { keyword, isEmpty, ...rest } = read.data;
  if (isEmpty) return { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd: 0 };
  return generatePage({ keyword: keyword.replace(trigger, "").trim() || "sandbox", ...rest });
}

async function answerLocally(request: PageRequest, signal: AbortSignal): Promise<PageAnswer> {
  const asked = seed.parse(JSON.parse(request.body));
  const triggers = asked.keyword.includes("sandbox:") ? triggersOf(asked.keyword) : new Map<string, number>();
  if (triggers.has("slow")) await sleep(triggers.get("slow"), undefined, { signal });
  if (triggers.has("timeout")) await sleep(2 * callTimeoutMs, undefined, { signal });
  if (triggers.has("error")) return answered(503, "");
  if (triggers.has("refused")) return answered(403, "");
  if (triggers.has("garbage")) return answered(200, "<!doctype html><title>Not what was asked for</title>");
  return answered(200, JSON.stringify({ ...asked, isEmpty: triggers.has("empty") }));
}

function triggersOf(keyword: string): Map<string, number> {
  return new Map(Array.from(keyword.matchAll(trigger), ([, word = "", number = "0"]) => [word, Number(number)]));
}

function answered(status: number, body: string): PageAnswer {
  return { status, headers: {}, body };
}
