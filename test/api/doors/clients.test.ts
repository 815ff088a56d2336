import { describe, expect, onTestFinished, test, vi } from "vitest";
import { newToken } from "../../../api/tokens/tokens.ts";
import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import type { Answer, Service } from "../../harness/processes/service.ts";
import { doorPatience, usualService } from "../../harness/processes/usual-stack.ts";
import { type DoorClient, doorClients } from "./door-clients.ts";

/** The doors, by clients that others wrote. */

vi.spyOn(console, "log").mockImplementation(() => undefined); // LangChain prints each answer that is an error.
const service = await usualService();
const api = service.apis[0]?.url ?? "";

/** An organization with a token that a client can send, in a header or in the address. */
const organizationOf = ({ inAddress = false }, options: Parameters<Service["organization"]>[0] = {}) =>
  service.organization({ ...(inAddress && { scopes: ["door"], dayMils: 1_000 }), ...options });

const payer = await service.organization({ creditMils: 10_000 });
const addressPayer = await organizationOf({ inAddress: true });

/** Sends a JSON body as clients do. */
async function post(path: string, headers: Record<string, string>, body: unknown): Promise<Answer["body"]> {
  const answer = await service.send(`/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  return answer.body;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** What goes wrong, and the message that then tells a person. */
const failures = [
  ["no credit", "tea", { code: "out_of_credits", status: 402, message: "it costs 5 mils, 1 are available" }],
  ["a spent limit", "tea", { code: "out_of_credits", status: 402, message: "The token's spending limit" }],
  ["a wrong token", "tea", { code: "unauthenticated", status: 401, message: "Tokens may expire" }],
  ["a full rate window", "tea", { code: "rate_limited", status: 429, message: "The rate window of 1 requests" }],
  ["a failing provider", "sandbox:error", { code: "engine_error", status: 502, message: "Nothing was charged" }],
] as const;

const timeout = { code: "engine_timeout", status: 504, message: "within 60 s of its start" };

/** The statuses that some doors have instead. */
const otherStatuses: Record<string, Record<string, number>> = {
  tavily: { out_of_credits: 432 },
  serper: { out_of_credits: 400, unauthenticated: 403 },
};

type ShowingClient = DoorClient & Required<Pick<DoorClient, "shows">>;
const isShowing = (client: DoorClient): client is ShowingClient => client.shows !== undefined;

/** The part of an error that a client shows, for its door's status. */
function shownBy({ client, shows }: ShowingClient, error: { code: string; status: number; message: string }): string {
  const door = Object.keys(otherStatuses).find((name) => client.toLowerCase().includes(name)) ?? "";
  const status = otherStatuses[door]?.[error.code] ?? error.status;
  return { message: error.message, code: error.code, status: String(status) }[shows];
}

describe.each(doorClients)("$client", (doorClient) => {
  const { search } = doorClient;
  test("gets results, and pays once for a repeat", async () => {
    const { organizationId, token } = await organizationOf(doorClient);
    const found = await search({ api, q: "garden pump", token });
    expect(found.length).toBeGreaterThan(2);
    for (const { title, url, text } of found) {
      expect([title, text]).toEqual([expect.stringMatching(/./), expect.any(String)]);
      expect(url).toMatch(/^https?:/);
    }
    expect(await search({ api, q: "garden pump", token })).toEqual(found);
    await service.rest(organizationId);
    const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
    expect(charges.map(({ mils }) => mils)).toEqual([-5]);
  });

  test("gets an empty list for a search without results", async () => {
    const { token } = doorClient.inAddress ? addressPayer : payer;
    expect(await search({ api, q: "sandbox:empty", token })).toEqual([]);
  });

  if (!isShowing(doorClient)) return;

  /** A token with which this goes wrong. */
  const tokens: Record<(typeof failures)[number][0], () => Promise<string>> = {
    "no credit": async () => (await organizationOf(doorClient, { creditMils: 1 })).token,
    "a spent limit": async () => {
      const { token } = await organizationOf(doorClient, { dayMils: 5 });
      await search({ api, q: "first", token });
      return token;
    },
    "a wrong token": async () => newToken(),
    "a full rate window": async () => {
      const { token } = await organizationOf(doorClient, { terms: { ...endlessWindow, windowLimit: 1 } });
      await search({ api, q: "first", token });
      return token;
    },
    "a failing provider": async () => (await organizationOf(doorClient)).token,
  };

  // A program for each search: one of its failures says that it shows them.
  const shown = doorClient.client === "mcp-searxng" ? failures.slice(0, 1) : failures;
  test.each(shown)("shows its user %s", async (failure, q, error) => {
    const token = await tokens[failure]();
    await expect(search({ api, q, token })).rejects.toThrow(shownBy(doorClient, error));
  });
});

test("every client shows its user that its patience has ended", async () => {
  // An API of its own: on a busy machine this patience would end other tests' searches too.
  const impatient = await service.startApi(doorPatience(1_000));
  onTestFinished(async () => {
    service.apis.splice(service.apis.indexOf(impatient), 1);
    await impatient.destroy();
  });
  // All at once, because each takes as long as the patience.
  await Promise.all(
    doorClients.filter(isShowing).map(async (doorClient) => {
      const { token } = await organizationOf(doorClient);
      const asked = doorClient.search({ api: impatient.url, q: "sandbox:slow=9000", token });
      await expect(asked).rejects.toThrow(shownBy(doorClient, timeout));
    }),
  );
});

const wrong: [door: string, body: unknown, says: string, code?: string][] = [
  ["tavily/search", { query: "a", include_raw_content: true }, "`include_raw_content`: This door gives no contents"],
  ["tavily/search", { query: "a", max_results: 21 }, "`max_results`: Expected a whole number from 1 to 20."],
  ["tavily/search", { query: "a", country: "nowhere" }, "`country`:"],
  ["openwebui", { query: "" }, "`query`:"],
  ["perplexity/search", { query: ["a", "b"] }, "`query`: Expected one query"],
  ["serper/search", { q: "a", num: 100, page: 2 }, "`page`: Expected a page that ends at result 100"],
  ["firecrawl/v2/search", { query: "a", categories: ["github"] }, "`categories`: This door gives no categories."],
  ["serper/search", { q: "a", type: "news" }, "`type`: This door gives no news"],
  ["tavily/search", { query: "a", time_range: "decade" }, "`time_range`: Expected one of day,"],
  ["firecrawl/v2/search", { query: "a", country: "nowhere" }, "`country`:"],
  ["firecrawl/v2/search", { query: "a", country: "nowhere", location: "nowhere" }, "`location`:"],
  ["serper/search", { q: "a", gl: "nowhere" }, "`gl`:"],
  ["serper/search", { q: "a", gl: "nowhere", location: "nowhere" }, "`location`:"],
  ["serper/search", [{ q: "a" }], "Expected a JSON object as the body."],
  // The worker refuses these.
  [
    "tavily/search",
    { query: "a", country: "Nowhere, Germany" },
    "The place in `country` is not known",
    "query_rejected",
  ],
  [
    "serper/search",
    { q: "a", gl: "de", location: "Nowhere" },
    "The place in `location` is not known",
    "query_rejected",
  ],
];

test.each([
  { path: "tavily/extract", has: 'Expected "/search".' },
  { path: "serper/news", has: 'Expected "/search".' },
  { path: "firecrawl/v2/scrape", has: 'Expected "/v1/search" or "/v2/search".' },
  { path: "openwebui/search", has: 'Expected "/".' },
])("$path is refused with the paths that the door has", async ({ path, has }) => {
  const answer = await service.send(`/${path}`, { method: "POST", headers: bearer(payer.token) });
  expect({ status: answer.status, text: answer.text.replaceAll("\\", "") }).toEqual({
    status: 404,
    text: expect.stringContaining(`There is no such path. ${has}`),
  });
});

test.each(wrong)(
  "%s refuses %j in the client's words, before anything is charged",
  async (door, body, says, code = "bad_request") => {
    const { organizationId, token } = await service.organization();
    const refusal = post(door, bearer(token), body).catch(String);
    for (const told of [says, code]) expect(await refusal).toContain(told);
    expect(await service.holdsOf(organizationId)).toMatchObject({ open: 0 });
  },
);

test("the sites that a client wants become operators of the keyword", async () => {
  const { query } = await post("tavily/search", bearer(payer.token), {
    query: "pump",
    include_domains: ["a.example", "b.example"],
    exclude_domains: ["c.example"],
  });
  expect(query).toBe("pump");
  const keyword = "pump (site:a.example OR site:b.example) -site:c.example";
  // The search log is written after the answer.
  await service.until(async () => {
    const { rowCount } = await service.database.query("select from search_log where keyword = $1", [keyword]);
    return rowCount === 1;
  });
});

test("Tavily's answer is the engine's own, if it was asked for", async () => {
  const ask = (wish: object) => post("tavily/search", bearer(payer.token), { query: "garden pump", ...wish });
  expect((await ask({})).answer).toBeNull();
  expect((await ask({ include_answer: true })).answer).toMatch(/./);
});

test("Tavily's scores fall from result to result, and stay above the thresholds of clients", async () => {
  const { results } = await post("tavily/search", bearer(payer.token), { query: "long tail", max_results: 20 });
  const scores: number[] = results.map(({ score }: { score: number }) => score);
  expect(scores).toEqual([...new Set(scores)].toSorted((one, other) => other - one));
  expect([scores.length, scores[0]]).toEqual([20, 1]);
  expect(scores.at(-1)).toBeGreaterThan(0.8);
});

test("Serper's pages follow each other, with the elements that its clients read", async () => {
  const page = (number: number) =>
    post("serper/search", { "x-api-key": payer.token }, { q: "long tail", page: number });
  const [first, second] = [await page(1), await page(2)];
  expect(first).toMatchObject({
    searchParameters: { q: "long tail", type: "search" },
    knowledgeGraph: { title: expect.any(String) },
    peopleAlsoAsk: expect.arrayContaining([expect.objectContaining({ question: expect.any(String) })]),
    relatedSearches: expect.arrayContaining([{ query: expect.any(String) }]),
  });
  expect(second.organic[0].link).not.toBe(first.organic[0].link);
  expect(second.organic[0].position).toBe(1);
});
