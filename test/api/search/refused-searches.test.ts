import { expect, onTestFinished, test, vi } from "vitest";
import { SearchFailed } from "../../../api/errors.ts";
import { RefusedSearches } from "../../../api/search/refused-searches.ts";
import { newToken } from "../../../api/tokens/tokens.ts";
import { CallerError } from "../../../shared/errors.ts";
import { newId } from "../../../shared/ids.ts";
import {
  clearOldRefused,
  findRefused,
  insertRefused,
  readRefused,
  type RefusedSearch,
} from "../../../shared/search-log/refused-searches.ts";
import { Agent } from "../../harness/clients/agent.ts";
import { type PageVisitor, signedIn, signIn } from "../../harness/clients/page-visitor.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { Operator } from "../../harness/processes/operator.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The log of refused searches: who finds what in it, what it never has, and what it costs us. */

const service = await usualService();

/** Waits until the log has a row of this request. */
async function isLogged(requestId: string): Promise<string> {
  await service.until(async () => (await findRefused(service.database, requestId)) !== undefined);
  return requestId;
}

const readable = (html: string) =>
  html
    .replace(/<[^>]*>/g, "")
    .replaceAll("&quot;", '"')
    .replace(/\s+/g, " ");

const pasted = newToken();

/** Refused searches of an organization over every entrance, with what their pages show. */
async function refusedEverywhere({ organizationId, token }: Organization, visitor: PageVisitor) {
  const send = (path: string, headers: Record<string, string>, body: string) =>
    service.send(path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
  const fields = { location: "Munich, Germany", device: "phone", depth: 20, [pasted]: "value-x" };
  const invalid = await service.search(token, { keyword: "garden pump", ...fields });
  const unread = await send("/v1/serp/search", { authorization: `Bearer ${token}` }, `{"keyword": "secret-${pasted}`);
  const engine = await service.search(token, { keyword: "hose", engine: pasted });
  const unpaid = await service.search(token, { keyword: `pump ${pasted}`, language: "de" });
  const agent = await Agent.connect(service, token);
  const byAgent = await agent.call("serp.search", { keyword: "by agent" });
  await agent.close();
  const atDoor = await send("/serper/search", { "x-api-key": token }, JSON.stringify({ q: "at the door", gl: "de" }));
  const invalidAtDoor = await send("/serper/search", { "x-api-key": token }, '{"q":"rake at the door","num":"x"}');
  const unscoped = await service.issue(organizationId, { scopes: ["usage"] });
  const withoutScope = await service.search(unscoped.token, { keyword: "not read" });
  const form = { organization: organizationId, key: "k", keyword: "in the playground" };
  const byForm = await visitor.post("/playground/search", form);
  return [
    {
      id: invalid.requestId,
      shows: ["400 bad_request", "smk_…: Unknown field", "garden pump", "Munich, Germany", "Depth20"],
    },
    { id: unread.requestId, shows: ["400 bad_request", "The body is not valid JSON", "body_not_json"] },
    { id: engine.requestId, shows: ["501 not_implemented", 'The engine "smk_…" is not implemented', "hose"] },
    { id: unpaid.requestId, shows: ["402 out_of_credits", "it costs 5 mils", "pump smk_…", "German", "Top up at"] },
    { id: byAgent.body.requestId, shows: ["402 out_of_credits", "by agent"] },
    { id: atDoor.requestId, shows: ["402 out_of_credits", "at the door"] },
    { id: invalidAtDoor.requestId, shows: ["400 bad_request", "num:", "rake at the door"] },
    { id: withoutScope.requestId, shows: ["401 unauthenticated", "lacks the scope"] },
    { id: byForm.requestId, shows: ["402 out_of_credits", "in the playground"] },
  ];
}

test("a refused search is found by its id over every entrance, with status, message, advice, and only valid fields", async () => {
  const { organization, person: visitor } = await signedIn(service, { creditMils: 1 });
  const other = await signIn(service, await service.organization());
  const cases = await refusedEverywhere(organization, visitor);
  for (const { id, shows } of cases) {
    const { status, text } = await visitor.get(`/billing/searches/${await isLogged(id)}`);
    expect({ id, status }).toEqual({ id, status: 200 });
    for (const part of shows) expect(readable(text)).toContain(part);
    expect(text).toMatch(/<a href="\/docs#description\/\d{3}-/);
    expect(text).not.toMatch(/value-x|secret-|phone/);
    expect(text).not.toContain(pasted);
    expect((await other.get(`/billing/searches/${id}`)).status).toBe(404);
    expect((await visitor.get(`/billing/searches?find=${id}`)).text).toContain(`href="/billing/searches/${id}"`);
  }
  const listed = readable((await visitor.get("/billing/searches?show=refused")).text);
  for (const { shows } of cases) expect(listed).toContain(shows[0]);
  for (const shown of ["Not read", "No valid keyword", "rake at the door"]) expect(listed).toContain(shown);
  const found = readable((await visitor.get("/billing/searches?show=refused&find=PUMP")).text);
  expect([found.includes("garden pump"), found.includes("hose")]).toEqual([true, false]);
  expect((await visitor.get("/billing/searches.csv?show=refused")).status).toBe(404);
  expect(readable((await other.get("/billing/searches?show=refused")).text)).toContain(
    "There are no refused searches.",
  );

  const operator = new Operator(service);
  const shown = await operator.run("search", "show", cases[0]?.id ?? "");
  expect(shown).toMatchObject({ orgId: organization.organizationId, outcome: "refused", depth: 20 });
  const exported = await operator.try("org", "export", organization.organizationId);
  expect(exported.stdout.match(/"kind":"refused_search"/g)).toHaveLength(cases.length);
});

/** A refused request of an organization, as its response closes. */
const refusedRequest = (organizationId: string, error = new CallerError("not_implemented", { engine: "a" })) => ({
  requestId: newId("req"),
  search: { keyword: "k".repeat(700), depth: 0 },
  error,
  logFields: { organizationId, tokenId: newId("tok") },
});

/** What a writer of rows gets while the clock stands still: no minute ends in between. */
function recordRows() {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const rows: RefusedSearch[] = [];
  let dropped = 0;
  const writer = { add: (row: RefusedSearch) => void rows.push(row), drop: () => void (dropped += 1) };
  return { refused: new RefusedSearches(writer), rows, dropped: () => dropped };
}

test("a flood of refused searches makes ten rows and one that counts, for each organization and minute", () => {
  const { refused, rows } = recordRows();
  const minuteMs = 60_000;
  refused.countMinute(Date.now());
  const flood = Array.from({ length: 5_000 }, () => refusedRequest("org_a"));
  for (const request of flood) refused.add(request);
  refused.add(refusedRequest("org_b"));
  expect(rows.map(({ organizationId }) => organizationId)).toEqual([...Array(10).fill("org_a"), "org_b"]);
  refused.countMinute(Date.now() + minuteMs);
  expect(rows.slice(11)).toEqual([
    expect.objectContaining({ requestId: flood.at(-1)?.requestId, refusals: 4_990, query: undefined }),
  ]);
  for (const row of rows) expect(JSON.stringify(row).length).toBeLessThan(1_200);
});

test("refused searches of more organizations than a process keeps in a minute are counted as dropped", () => {
  const { refused, rows, dropped } = recordRows();
  refused.countMinute(Date.now());
  for (let at = 0; at < 10_002; at += 1) refused.add(refusedRequest(`org_${at}`));
  expect([rows.length, dropped()]).toEqual([10_000, 2]);
});

test("a search that ran and failed, one that still runs, and requests of other kinds are not logged as refused", () => {
  const { refused, rows } = recordRows();
  const request = refusedRequest("org_a");
  refused.add({ ...request, error: new SearchFailed("engine_error", { reason: "provider_refused" }, {}) });
  refused.add({ ...request, error: new CallerError("engine_timeout", { reason: "still_running", timeoutMs: 1 }) });
  refused.add({ ...request, error: undefined });
  refused.add({ ...request, search: undefined });
  refused.add({ ...request, logFields: {} });
  expect(rows).toEqual([]);
});

test("a refused search is found by its id behind ten thousand newer ones, and by its keyword on the next page", async () => {
  const organization = await service.organization();
  const { organizationId, tokenId } = organization;
  const requestId = requestIdAt(Date.now() - 60_000);
  const row = { requestId, organizationId, tokenId, code: "bad_request", reason: undefined, message: "m", refusals: 1 };
  const last = requestIdAt(Date.now() - 30_000);
  await insertRefused(service.database, [
    { ...row, query: { keyword: "needle" } },
    { ...row, requestId: last, query: {} },
  ]);
  const newer = `insert into refused_searches (at, request_id, organization_id, token_id, code, message, refusals)
    select now(), 'req_' || n, organization_id, token_id, code, message, 1 from refused_searches, generate_series(1, 9999) n
    where request_id = $1`;
  await asOwner(service.databaseUrl, (owner) => owner.query(newer, [requestId]));
  const visitor = await signIn(service, organization);
  const { text } = await visitor.get(`/billing/searches?find=${requestId}`);
  expect(text).toContain(`href="/billing/searches/${requestId}"`);
  const first = (await visitor.get("/billing/searches?show=refused&find=needle")).text;
  expect(readable(first)).toContain("Nothing found so far.");
  const [, older] = /href="([^"]+)">Older/.exec(first.replaceAll("&amp;", "&")) ?? [];
  expect(older).toContain(`before=${last}`);
  expect((await visitor.get(older ?? "")).text).toContain(`href="/billing/searches/${requestId}"`);
});

test("refused searches are paged, stay for a week or as long as the search log, and leave with their organization", async () => {
  const { organizationId, tokenId } = await service.organization();
  const dayMs = 86_400_000;
  const row = (ageDays: number): RefusedSearch => ({
    requestId: requestIdAt(Date.now() - ageDays * dayMs),
    organizationId,
    tokenId,
    code: "bad_request",
    reason: undefined,
    message: "m",
    query: {},
    refusals: 1,
  });
  const [fresh, older, week] = [row(0), row(3), row(6.9)];
  const all = [fresh, older, week, row(7.1)];
  const { database } = service;
  await insertRefused(database, [...all, ...all]);
  const left = async () =>
    (await readRefused(database, organizationId, { limit: 9 })).map(({ requestId }) => requestId);
  const ids = (rows: RefusedSearch[]) => rows.map(({ requestId }) => requestId);
  expect(await left()).toEqual(ids(all));
  const page = await readRefused(database, organizationId, { before: fresh.requestId, limit: 1 });
  expect(page).toMatchObject([{ requestId: older.requestId }]);
  await clearOldRefused(database, 30, 100);
  expect(await left()).toEqual(ids([fresh, older, week]));
  await clearOldRefused(database, 2, 100);
  expect(await left()).toEqual(ids([fresh]));
  expect(await new Operator(service).run("org", "erase", organizationId, "--yes")).toMatchObject({ searches: 1 });
  await insertRefused(database, [older]);
  expect(await left()).toEqual([]);
  await asOwner(service.databaseUrl, (client) => client.query("delete from refused_searches"));
});
