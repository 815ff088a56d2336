import { expect, test } from "vitest";
import { localeOf } from "../../../api/doors/door.ts";
import { newToken } from "../../../api/tokens/tokens.ts";
import { requestText, sendRaw } from "../../harness/clients/raw-http.ts";
import { doorHost as host, usualService } from "../../harness/processes/usual-stack.ts";

/** The door `searxng`; its clients are in clients.test.ts. */

const service = await usualService();
const payer = await service.organization({ creditMils: 10_000 });

const allOf = (fields: Record<string, string>) => new URLSearchParams({ format: "json", ...fields }).toString();

/** A search as LibreChat sends it (@librechat/agents 3.9.2, src/tools/search/search.ts). */
const ask = (fields: Record<string, string>, headers: Record<string, string> = { "x-api-key": payer.token }) =>
  service.send(`/searxng/search?${allOf(fields)}`, { headers });

test("the results are sorted by score, with every field that clients read, and are charged", async () => {
  const organization = await service.organization();
  const { status, headers, body } = await ask({ q: "garden pump" }, { "x-api-key": organization.token });
  expect(status).toBe(200);
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  const { results, ...others } = body;
  expect(results.length).toBeGreaterThan(5);
  for (const result of results)
    expect(result).toMatchObject({
      url: expect.stringMatching(/^https?:/),
      title: expect.stringMatching(/./),
      content: expect.any(String),
      description: result.content,
      engine: "google",
      engines: ["google"],
      score: expect.any(Number),
    });
  const scores = results.map(({ score }: { score: number }) => score);
  expect(scores).toEqual(scores.toSorted((one: number, other: number) => other - one));
  expect(new Set(scores).size).toBe(scores.length);
  expect(others).toMatchObject({ query: "garden pump", corrections: [], unresponsive_engines: [] });
  expect(others.number_of_results).toBeGreaterThan(0);
  for (const texts of [others.answers, others.suggestions]) {
    expect(texts.length).toBeGreaterThan(0);
    for (const text of texts) expect(text).toMatch(/./);
  }
  expect(others.infoboxes[0]).toMatchObject({ infobox: expect.stringMatching(/./), content: expect.any(String) });
  await service.rest();
  expect((await service.ledgerOf(organization.organizationId)).map(({ kind, mils }) => ({ kind, mils }))).toEqual([
    { kind: "grant", mils: 1_000 },
    { kind: "charge", mils: -5 },
  ]);
});

test("an unknown token is challenged", async () => {
  const { status, headers } = await ask({ q: "tea" }, { "x-api-key": newToken() });
  expect([status, headers.get("www-authenticate")]).toEqual([401, expect.stringContaining("Bearer")]);
});

test("a page has the results that follow those of the page before", async () => {
  const pages = await Promise.all(["1", "2"].map((pageno) => ask({ q: "long tail", pageno })));
  const { body: whole } = await service.search(payer.token, { keyword: "long tail", depth: 20 });
  const organic = whole.results.filter(({ type }: { type: string }) => type === "organic");
  const urls = pages.map(({ body }) => body.results.map(({ url }: { url: string }) => url));
  expect(urls[1]).toEqual(organic.slice(10, 20).map(({ url }: { url: string }) => url));
  expect(urls[0]).not.toEqual(urls[1]);
});

test("a language that names none changes nothing", async () => {
  const answers = [];
  for (const language of ["all", "auto", "", "en"]) answers.push(await ask({ q: "shoes", language }));
  expect(new Set(answers.map(({ requestId }) => requestId)).size).toBe(1);
  const german = await ask({ q: "shoes", language: "de-AT" });
  expect(german.requestId).not.toBe(answers[0]?.requestId);
});

/** Posts a form, as the clients of SearXNG may. */
const post = (form: Record<string, string>, query = "") =>
  service.send(`/searxng/search${query}`, {
    method: "POST",
    headers: { "x-api-key": payer.token },
    body: new URLSearchParams(form),
  });

test("a posted form is read, and its fields have precedence over those of the address", async () => {
  const form = { q: "posted form", format: "json", language: "de" };
  const { status, body } = await post(form, "?q=other&pageno=2");
  expect({ status, query: body.query }).toEqual({ status: 200, query: "posted form" });
  const asked = await ask({ q: "posted form", language: "de", pageno: "2" });
  expect(body.results).toEqual(asked.body.results);
});

test("a form that is too large is refused", async () => {
  const { status, body } = await post({ q: "a".repeat(17_000), format: "json" });
  expect({ status, details: body.details }).toEqual({ status: 400, details: { reason: "body_too_large" } });
});

test("its configuration names a category, an engine and languages, and costs nothing", async () => {
  const { organizationId, token } = await service.organization();
  const { token: inAddress } = await service.organization({ scopes: ["door"], dayMils: 10 });
  const answer = await service.send("/searxng/config", { headers: { authorization: `Bearer ${token}` } });
  expect(answer).toMatchObject({
    status: 200,
    body: { categories: ["general"], engines: [{ name: "google", enabled: true }], locales: { de: "Deutsch" } },
  });
  expect((await service.send(`/searxng/k/${inAddress}/config`)).body).toEqual(answer.body);
  expect((await service.send("/searxng/config")).status).toBe(401);
  const unread = Object.keys(answer.body.locales).filter((locale) => localeOf(locale).language !== locale);
  expect(unread).toEqual([]);
  await service.rest();
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant"]);
});

test("the answer has the client's query, without the operators of a range of time", async () => {
  const { body } = await ask({ q: "tea", time_range: "day" });
  expect(body.query).toBe("tea");
});

const wrong = [
  ["no keyword", {}, "`q`: This field is required."],
  ["a blank keyword", { q: " " }, "`q`: Expected at least one visible character."],
  ["no keyword but a range of time", { q: " ", time_range: "day" }, "`q`: Expected at least one visible character."],
  ["another format", { q: "a", format: "html" }, "`format`: Expected json"],
  ["a page that is too far", { q: "a", pageno: "11" }, "`pageno`: Expected a whole number from 1 to 10."],
  ["an unknown language", { q: "a", language: "klingonese" }, "`language`:"],
] as const;

test.each(wrong)(
  "a request with %s is refused in the client's words before anything is charged",
  async (_, fields, says) => {
    const { status, body } = await ask({ ...fields });
    expect({ status, code: body.code }).toEqual({ status: 400, code: "bad_request" });
    expect(body.error).toContain(says);
  },
);

test("another path of the door is not found, and another method not allowed, in the door's form", async () => {
  const headers = { "x-api-key": payer.token };
  const unknown = await service.send("/searxng/preferences", { headers });
  expect({ status: unknown.status, ...unknown.body }).toMatchObject({
    status: 404,
    code: "not_found",
    error: 'There is no such path. Expected "/search", "/" or "/config".',
    details: { paths: ["/search", "/", "/config"] },
  });
  const deleted = await service.send("/searxng/search?q=a", { method: "DELETE", headers });
  expect({ status: deleted.status, code: deleted.body.code }).toEqual({ status: 405, code: "method_not_allowed" });
  expect(deleted.headers.get("allow")).toBe("GET, POST");
});

/** A GET with a host of the test's choice. */
async function getAt(hostHeader: string, path: string, more: Record<string, string> = {}) {
  const headers = { host: hostHeader, "x-api-key": payer.token, connection: "close", ...more };
  const { answers } = await sendRaw(service.apis[0]?.url ?? "", requestText(`GET ${path}`, headers));
  return answers[0];
}

test.each([host, `${host}:8443`, "SearXNG.serp.example", `${host}.`])(
  "the host %s serves the door at its root",
  async (name) => {
    const atPath = await getAt(name, "/search?q=tea&format=json");
    const atRoot = await getAt(name, "/?q=tea&format=json");
    expect([atPath?.status, atRoot?.status]).toEqual([200, 200]);
  },
);

/** What the host of a door must not serve, in spellings that a router may read differently. */
const hidden = `/docs /billing /billing/tokens /v1/usage /mcp /openapi.json /llms.txt /metrics /queues /tavily/search
  /searxng/search?q=tea&format=json //v1/usage /./v1/usage /searxng/../v1/usage /search/..%2f..%2fv1/usage /%76%31/usage
  /v1/usage?path=/search http://127.0.0.1/v1/usage`.split(/\s+/);

test.each([host, host.toUpperCase(), `${host}.`, `${host}:443`, `${host}.:8443`, `${host}:`])(
  "the host %s of a door serves its door alone",
  async (name) => {
    for (const path of hidden) expect([path, (await getAt(name, path))?.body.code]).toEqual([path, "not_found"]);
    expect((await getAt(name, "/"))?.body).toMatchObject({ error: expect.any(String), code: "bad_request" });
  },
);

const found = "search?q=confused&format=json";
const lookalikes = `//searxng/${found} /SEARXNG/${found} /%73earxng/${found} /searxng%2f${found} /searxng;/${found}
  /searxng\\${found} /./searxng/${found} /v1/../searxng/${found} /${found} /searxng/../v1/usage /searxng/../../v1/usage
  /searxng/..%2fv1/usage /searxng/v1/usage /__proto__/search /constructor`.split(/\s+/);

test.each(lookalikes)("%s leads to no door, and out of none", async (path) => {
  expect((await getAt("a", path))?.status).toBe(404);
});

test.each([`x${host}`, `${host}.evil.example`, `evil.example:${host}`, `${host}@evil.example`])(
  "the host %s is that of no door",
  async (name) => expect([400, 404]).toContain((await getAt(name, `/${found}`))?.status),
);

test.each([{ "x-forwarded-host": host }, { forwarded: `host=${host}` }, { "x-original-host": host }])(
  "no door is chosen by %o",
  async (header) => expect((await getAt("a", `/${found}`, header))?.status).toBe(404),
);

test("a slash too many does not matter", async () => {
  const { status } = await service.send("/searxng//search?q=tea&format=json", {
    headers: { "x-api-key": payer.token },
  });
  expect(status).toBe(200);
});

test("the log has the door as the route, and the token's id", async () => {
  const { headers } = await ask({ q: "log line" });
  const requestId = headers.get("x-request-id");
  const logged = () => service.apis[0]?.lines.find((fields) => fields["requestId"] === requestId);
  await service.until(async () => logged() !== undefined);
  expect(logged()).toMatchObject({ route: "/searxng/search", tokenId: payer.tokenId, outcome: "answered" });
});

test("a keyword that is not UTF-8 is refused by the name of its field, and a percent sign that encodes nothing is not", async () => {
  const headers = { "x-api-key": payer.token };
  const latin1 = await service.send("/searxng/search?format=json&q=caf%E9", { headers });
  expect([latin1.status, latin1.body.error]).toEqual([400, "`q`: Expected valid UTF-8."]);
  const form = { ...headers, "content-type": "application/x-www-form-urlencoded" };
  for (const body of ["q=caf%E9", Buffer.from("q=caf\u00e9", "latin1")]) {
    const posted = await service.send("/searxng/search?format=json", { method: "POST", headers: form, body });
    expect([posted.status, JSON.stringify(posted.body)]).toEqual([
      400,
      expect.stringContaining("The body is not valid UTF-8."),
    ]);
  }
  const percent = await service.send("/searxng/search?format=json&q=100%+caf%C3%A9", { headers });
  expect([percent.status, percent.body.query]).toEqual([200, "100% café"]);
});
