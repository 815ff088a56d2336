import { afterEach, describe, expect, test, vi } from "vitest";
import type { PageAnswer, Provider, Transport } from "../../../../worker/providers/provider.ts";
import { openSerpapi } from "../../../../worker/providers/serpapi/serpapi.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";
import { serpapiKey, succeededMetadata } from "../../../harness/fixtures/serpapi-page.ts";
import { googleOver } from "../../../harness/processes/google-engine.ts";
import { everyPage, failing, openClient, page, type Sent } from "./fixtures.ts";

/** AI Overviews that a page only announces, and that a second call fetches. */

const serpapi = openSerpapi(engineConfig({ SERPAPI_API_KEY: serpapiKey, SERPAPI_AI_OVERVIEW: "on" }));
const succeeded = (parts: object): PageAnswer => {
  const body = JSON.stringify({ search_metadata: succeededMetadata, ...parts });
  return { status: 200, headers: {}, body };
};

afterEach(() => void vi.useRealTimers());

/** Searches where the call for the overview gets this answer. */
async function searchWith(overview: Transport, remainingMs = 60_000) {
  const asked: string[] = [];
  const transport: Transport = async (request, signal) => {
    const sent = new URL(request.url).searchParams;
    const start = sent.get("start");
    asked.push(sent.get("page_token") ?? `page at ${start}`);
    if (start === null) return overview(request, signal);
    const organic_results = [{ title: "Pumps", link: `https://pumps.example/${start}` }];
    const ai_overview = { page_token: "the token" };
    return succeeded({ organic_results, serpapi_pagination: { next: "x" }, ...(start === "0" && { ai_overview }) });
  };
  const answer = await googleOver({ ...serpapi, transport }).search(query({ depth: 20 }), remainingMs);
  const results = answer.ok ? answer.results : [];
  const texts = results.filter(({ type }) => type === "ai_overview").map(({ description }) => description);
  return { asked, texts, organic: results.filter(({ type }) => type === "organic").length, trace: answer.trace };
}

test("an overview is fetched beside the other pages, at the operator's cost", async () => {
  const found = await searchWith(async () => succeeded({ ai_overview: { text_blocks: [{ snippet: "Water." }] } }));
  expect(found).toMatchObject({ texts: ["Water."], organic: 2, trace: { costMicroUsd: 75_000, calls: [{}, {}, {}] } });
  expect(new Set(found.asked)).toEqual(new Set(["page at 0", "page at 10", "the token"]));
});

/** Ends only when it is given up. */
const hanging: Transport = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });

test.each<[string, Transport]>([
  ["an overview that fails", async () => ({ status: 401, headers: {}, body: "{}" })],
  ["an overview that does not come in time", hanging],
])("%s is without text, and the search is answered", async (_, overview) => {
  const { texts, organic, trace } = await searchWith(overview, 1_500);
  expect({ texts, organic, costMicroUsd: trace.costMicroUsd }).toEqual({
    texts: [""],
    organic: 2,
    costMicroUsd: 50_000,
  });
});

test("pages wait 6 s for an overview that hangs, however much time the search has", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const search = searchWith(hanging);
  const answered = vi.fn<() => void>();
  void search.then(answered);
  await vi.advanceTimersByTimeAsync(5_999);
  expect(answered).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(answered).toHaveBeenCalledOnce();
  expect(await search).toMatchObject({ texts: [""], organic: 2 });
});

describe("the call for an announced AI Overview", () => {
  const callTimeoutMs = 10_000;
  const overviewNumber = 0;
  const open = (settings: Partial<Provider> = {}) =>
    openClient({
      callTimeoutMs,
      read: () => page({ overviewToken: "the token" }),
      overview: {
        request: () => ({ url: String(overviewNumber), headers: {}, body: "" }),
        read: () => page(),
      },
      ...settings,
    });
  const isOverview = (sent: Sent) => sent.pageNumber === overviewNumber;

  test("that hangs is no sign that the provider has too many calls", async () => {
    const { client, stub, times, requested } = open({ concurrentCallsMax: "adaptive" });
    const { callsMax } = client;
    stub.reply = (sent) => (isOverview(sent) ? { failure: "timeout" } : everyPage(sent));
    await times(20);
    expect(requested().filter((number) => number === overviewNumber)).toHaveLength(20);
    expect(client.callsMax).toBe(callsMax);
  });

  test("does not count as the time that the provider usually needs for a page", async () => {
    const { stub, fetch } = open();
    const now = vi.spyOn(performance, "now");
    let nowMs = 0;
    now.mockImplementation(() => nowMs);
    stub.reply = (sent) => {
      nowMs += isOverview(sent) ? 5_000 : 1_000;
      return everyPage(sent);
    };
    await fetch();
    stub.reply = failing("timeout");
    expect((await fetch({ remainingMs: 2_500 })).outcome).toEqual({ failure: "timeout", outOfTime: true });
    now.mockRestore();
  });
});
