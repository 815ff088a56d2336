/**
 * The sandbox: answers every query without a network, always in the same way, with every type of result and with sites that
 * cannot exist (`*.example`). No authentication, no cost, no limits.
 * It has its own transport in place of HTTP. Everything else is the same as for other providers, so its triggers (words in the
 * keyword such as `sandbox:error`) exercise the real timeouts, retries and failover.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { capabilities } from "../../../shared/capabilities/capabilities.ts";
import type { Failure, Page, PageAnswer, PageRequest, Provider } from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import { generatePage } from "./generate-page.ts";

/** Not shorter than the longest deadline, so that only the search itself can time out. */
const callTimeoutMs = 120_000;

/** `sandbox:error` as a word of the keyword; `sandbox:slow=1500` in milliseconds. */
const triggerPattern = /(?<!\S)sandbox:(empty|corrected|slow|timeout|error|refused|garbage)(?:=(\d{1,6}))?(?!\S)/g;

/**
 * Request and answer have the same body: the seed that the page is generated from, and not the page. Benchmarks use the
 * sandbox, and a page of 13 kB as JSON would cost more than everything else.
 */
const seedSchema = z.object({ keyword: z.string(), variant: z.string(), pageNumber: z.int() });
const answerSchema = seedSchema.extend({ isEmpty: z.boolean(), isCorrected: z.boolean() });

export function openSandbox(): Provider {
  return {
    name: "sandbox",
    can: capabilities.sandbox,
    callTimeoutMs,
    concurrentCallsMax: Number.POSITIVE_INFINITY,
    request: ({ keyword, location, language, device }, pageNumber) => ({
      url: "sandbox:/search",
      method: "POST",
      headers: {},
      // Without depth and target domain, so that a deeper search begins with the same first page.
      body: JSON.stringify({ keyword, variant: `${location}\n${language}\n${device}`, pageNumber }),
    }),
    read: readPage,
    transport: answerLocally,
  };
}

function readPage({ status, body }: PageAnswer): Page | Failure {
  if (status === 403) return { failure: "account_refused" };
  if (status >= 500) return { failure: "unavailable" };
  const read = answerSchema.safeParse(parseJson(body));
  if (!read.success) return { failure: "unreadable" };
  const { keyword: typed, isEmpty, isCorrected, ...rest } = read.data;
  if (isEmpty) return { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd: 0 };
  const keyword = typed.replace(triggerPattern, "").trim() || "sandbox";
  const page = generatePage({ keyword, ...rest });
  return isCorrected ? { ...page, searchedKeyword: keyword } : page;
}

async function answerLocally(request: PageRequest, signal: AbortSignal): Promise<PageAnswer> {
  const seed = seedSchema.parse(JSON.parse(request.body));
  const triggers = seed.keyword.includes("sandbox:") ? triggersIn(seed.keyword) : new Map<string, number>();
  if (triggers.has("slow")) await sleep(triggers.get("slow"), undefined, { signal });
  if (triggers.has("timeout")) await sleep(2 * callTimeoutMs, undefined, { signal });
  if (triggers.has("error")) return answer(503, "");
  if (triggers.has("refused")) return answer(403, "");
  if (triggers.has("garbage")) return answer(200, "<!doctype html><title>Not what was asked for</title>");
  return answer(
    200,
    JSON.stringify({ ...seed, isEmpty: triggers.has("empty"), isCorrected: triggers.has("corrected") }),
  );
}

function triggersIn(keyword: string): Map<string, number> {
  return new Map(Array.from(keyword.matchAll(triggerPattern), ([, word = "", number = "0"]) => [word, Number(number)]));
}

function answer(status: number, body: string): PageAnswer {
  return { status, headers: {}, body };
}
