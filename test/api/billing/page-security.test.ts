import { afterAll, expect, test } from "vitest";
import { PageVisitor, signedIn } from "../../harness/clients/page-visitor.ts";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { expectSecurityHeaders } from "../../harness/fixtures/refusals.ts";
import { type Answer, Service } from "../../harness/processes/service.ts";

/** The security headers of every door, and the account pages' protection against forged requests, as OWASP ASVS requires. */

const service = await Service.start({ workers: 0, end: afterAll });
await service.startApi({ PUBLIC_URL: "https://search.example/" });

const own = 0;
const behindHttps = 1;

const isAccount = (text: string) => text.includes('action="/billing/sign-out"');

function expectPage({ headers }: Answer) {
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("content-security-policy")).toBe(
    "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
      "frame-ancestors 'none'; base-uri 'none'",
  );
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("same-origin");
  expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect(headers.get("permissions-policy")).toContain("camera=()");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-request-id")).toMatch(/^req_/);
  expect(headers.get("access-control-allow-origin")).toBeNull();
}

test("every page, including errors, has the security headers and is never cached", async () => {
  const { person } = await signedIn(service);
  const stranger = new PageVisitor(service);
  const pages = [
    [200, await person.get("/billing")],
    [200, await person.get("/billing/searches")],
    [200, await stranger.get("/billing")],
    [401, await stranger.signIn("x")],
    [401, await stranger.get("/billing/searches.csv")],
    [404, await person.get("/billing/nothing")],
    [404, await person.get("/billing/%E0%A4%A")],
    [404, await person.get("/billing/searches?show=everything")],
    [404, await person.get("/billing/searches?before=0")],
    [404, await person.get("/billing/searches?before=99999999999999999")],
    [404, await person.get("/billing/")],
    [404, await person.post("/billing/topup", { mils: "5000" })],
    [405, await person.get("/billing/sign-in")],
    [405, await person.post("/billing", {})],
  ] as const;
  for (const [status, page] of pages) {
    expect(page.status).toBe(status);
    expectPage(page);
    // Nothing on the page needs an exception from the policy.
    expect(page.text).not.toMatch(/<style|style=|<script(?! src="\/billing\/)|javascript:| on[a-z]+=/);
    expect(page.headers.get("strict-transport-security")).toBeNull();
  }
});

test("the errors of all other paths stay JSON", async () => {
  for (const path of ["/billings", "/v1/usage", "/Billing", "/"]) {
    expect((await service.send(path)).headers.get("content-type")).toBe("application/json; charset=utf-8");
  }
});

/** An answer of every kind from every door but the ops port, with the status that it should have. */
async function answersOf(
  api: number,
): Promise<[status: number, answer: Pick<Answer, "status" | "headers"> | undefined][]> {
  const { token } = await service.organization({ terms: { windowLimit: 1, windowSeconds: 1_000_000 } });
  const authorization = `Bearer ${token}`;
  const json = { authorization, "content-type": "application/json" };
  const get = (path: string, headers = {}) => service.send(path, { api, headers });
  const post = (path: string, body: string, headers = {}) => service.send(path, { api, method: "POST", headers, body });
  const raw = async (...head: string[]) =>
    (await sendRaw(service.apis[api]?.url ?? "", [...head, "", ""].join("\r\n"))).answers[0];
  return [
    [200, await get("/v1/usage", { authorization })],
    [429, await get("/v1/usage", { authorization })],
    [401, await get("/v1/usage")],
    [405, await post("/v1/usage", "{}")],
    [204, await service.send("/v1/usage", { api, method: "OPTIONS" })],
    [404, await get("/nowhere")],
    [400, await post("/v1/serp/search", "{", json)],
    [400, await post("/v1/serp/search", JSON.stringify({ keyword: "a".repeat(20_000) }), json)],
    [503, await post("/v1/serp/search", '{"keyword":"a"}', json)],
    [400, await post("/mcp", "{}", { ...json, accept: "application/json, text/event-stream" })],
    [401, await post("/mcp", "{}")],
    [200, await get("/openapi.json")],
    [200, await get("/docs")],
    [200, await get("/docs/page.js")],
    [200, await get("/billing")],
    [200, await get("/billing/live")],
    [200, await get("/billing/account.css")],
    [404, await get("/billing/nothing")],
    [400, await raw("GET / HTTP/9.9", "Host: a")],
    [417, await raw("GET / HTTP/1.1", "Host: a", "Expect: 200-ok")],
    [431, await raw("GET / HTTP/1.1", "Host: a", `X-Large: ${"a".repeat(8_200)}`)],
  ];
}

test.each([own, behindHttps])(
  "every answer of every door has the security headers, over https HSTS too (API %s)",
  async (api) => {
    for (const [status, answer] of await answersOf(api)) {
      if (!answer) throw new Error(`no answer instead of ${status}`);
      expect(answer.status).toBe(status);
      expectSecurityHeaders(answer, api === behindHttps);
    }
  },
);

test("the ops port has the security headers", async () => {
  for (const [path, status] of [
    ["/livez", 200],
    ["/metrics", 200],
    ["/nowhere", 404],
  ] as const) {
    const answer = await fetch(`${service.apis[own]?.opsUrl}${path}`);
    expect(answer.status).toBe(status);
    expectSecurityHeaders(answer);
  }
});

test("without a trusted proxy, X-Forwarded-Proto is ignored", async () => {
  const answer = await service.send("/billing", { headers: { "x-forwarded-proto": "https" } });
  expect(answer.headers.get("strict-transport-security")).toBeNull();
});

const foreign = [
  { title: "another site", headers: { "sec-fetch-site": "cross-site" } },
  { title: "another origin of the same site", headers: { "sec-fetch-site": "same-site" } },
  { title: "no site", headers: { "sec-fetch-site": "none" } },
  { title: "another site that claims our origin", headers: { "sec-fetch-site": "cross-site", origin: "OWN" } },
  { title: "another origin, in a browser without Sec-Fetch-Site", headers: { origin: "https://evil.example" } },
  { title: "a sandboxed frame", headers: { origin: "null" } },
  { title: "a client with neither header", headers: {} },
  { title: "an invalid origin", headers: { origin: "x" } },
];

test.each(foreign)("a form sent by $title does nothing", async ({ headers }) => {
  const { organization, person } = await signedIn(service);
  const url = service.apis[own]?.url ?? "";
  const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace("OWN", url)]));
  for (const path of ["/billing/sign-out", "/billing/sign-in"]) {
    const answer = await person.post(path, { token: organization.token }, sent);
    expect(answer.status).toBe(400);
    expectPage(answer);
    expect(answer.headers.get("set-cookie")).toBeNull();
  }
  expect(isAccount((await person.get("/billing")).text)).toBe(true);
});

test("a form of our own is accepted from a browser that sends only Origin, our own or the public one", async () => {
  const { person } = await signedIn(service);
  expect(await person.post("/billing/sign-out", {}, { origin: service.apis[own]?.url ?? "" })).toMatchObject({
    status: 303,
  });
  const other = (await signedIn(service, {}, { api: behindHttps })).person;
  expect(await other.post("/billing/sign-out", {}, { origin: "https://evil.example" })).toMatchObject({ status: 400 });
  expect(await other.post("/billing/sign-out", {}, { origin: "https://search.example" })).toMatchObject({
    status: 303,
  });
});

test("the page's files are cached permanently, because their addresses change with their content", async () => {
  const { text } = await new PageVisitor(service).get("/billing");
  const paths = [...text.matchAll(/(?:href|src)="(\/(?:billing|brand)\/[^"]+)"/g)].map(([, path]) => path ?? "");
  expect(paths).toEqual([
    expect.stringMatching(/^\/brand\/mark\.svg\?v=[0-9a-f]{16}$/),
    expect.stringMatching(/^\/brand\/figtree\.woff2\?v=[0-9a-f]{16}$/),
    expect.stringMatching(/^\/brand\/brand\.css\?v=[0-9a-f]{16}$/),
    expect.stringMatching(/^\/billing\/account\.css\?v=[0-9a-f]{16}$/),
    expect.stringMatching(/^\/billing\/account\.js\?v=[0-9a-f]{16}$/),
    expect.stringMatching(/^\/brand\/mark\.svg\?v=[0-9a-f]{16}$/),
  ]);
  for (const path of paths) {
    const { status, headers } = await service.send(path);
    expect(status).toBe(200);
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect((await service.send(`${path}older`)).headers.get("cache-control")).toBe("no-cache");
  }
});

test("a cache keeps the text for models only if its addresses are the operator's, not those of a caller's Host", async () => {
  const read = async (api: number) => {
    const { text, headers } = await service.send("/llms.txt", { api });
    return { isOwn: text.includes("https://search.example/docs"), kept: headers.get("cache-control") };
  };
  expect(await read(own)).toEqual({ isOwn: false, kept: "no-store" });
  expect(await read(behindHttps)).toEqual({ isOwn: true, kept: "public, max-age=300" });
});

test("with PUBLIC_URL and without payments the page names the operator, and does not link to itself", async () => {
  const { organization, person } = await signedIn(service, {}, { api: behindHttps });
  const { text } = await person.get("/billing");
  expect(text).toContain(`give your organization ID: <code>${organization.organizationId}</code>`);
  expect(text).not.toContain("https://search.example/billing");
});

test("after a link from another site the page reloads itself once, so that the browser sends its cookie", async () => {
  const abroad = { "sec-fetch-site": "cross-site" };
  const bridge = await service.send("/billing?topup=paid", { headers: abroad });
  expect(bridge.headers.get("refresh")).toBe("0; url=/billing?topup=paid");
  const { person } = await signedIn(service);
  expect((await person.get("/billing", abroad)).headers.get("refresh")).toBeNull();
  const arrived = { "sec-fetch-site": "same-origin" };
  expect((await service.send("/billing?topup=paid", { headers: arrived })).headers.get("refresh")).toBeNull();
});

test("an invalid absolute URL instead of a path still leads to the page", async () => {
  const head = ["GET http://x:99999/billing HTTP/1.1", "Host: a", "Sec-Fetch-Site: cross-site", "Connection: close"];
  const { answers } = await sendRaw(service.apis[own]?.url ?? "", `${head.join("\r\n")}\r\n\r\n`);
  expect(answers[0]?.status).toBe(200);
  expect(answers[0]?.headers.get("refresh")).toBe("0; url=/billing");
});
