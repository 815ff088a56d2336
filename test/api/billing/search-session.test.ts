import { beforeEach, expect, test } from "vitest";
import { newId } from "../../../shared/ids.ts";
import { forgetPageViews, PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import { accountRoutes } from "../../harness/fixtures/account-routes.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** What a session of a token that only searches may see: the playground and its own searches. */

const service = await usualService();
beforeEach(() => forgetPageViews(service));

/** An organization with a search of its first token, and a colleague who is signed in with a token that only searches. */
async function colleague() {
  const organization = await service.organization();
  const issued = await service.issue(organization.organizationId, { name: "ann", scopes: ["search"] });
  const foreign = await logged(organization.token, "the owner's secret");
  return { organization, token: issued.token, foreign, visitor: await signIn(service, issued) };
}

/** Sends a search, and waits until the log has it. @returns its request id. */
const logged = async (token: string, keyword: string) =>
  service.logged(await service.search(token, { keyword }, { key: keyword.replaceAll(/\W/g, "-") }));

const open = [
  "get /billing/searches",
  "get /billing/searches/:requestId",
  "get /billing/searches/:requestId/compare",
  "get /playground",
  "get /playground/suggestions/language",
  "get /playground/suggestions/location",
  "post /playground/search",
  "post /playground/cancel",
  "post /billing/sign-in",
  "post /billing/sign-out",
];
const isOpen = ({ method, path }: { method: string; path: string }) => open.includes(`${method} ${path}`);

test("a token that only searches opens the playground and its searches, and is denied every other page and form by default", async () => {
  const { organization, visitor, foreign } = await colleague();
  const { organizationId, tokenId } = organization;
  expect(accountRoutes.filter(isOpen)).toHaveLength(open.length);
  const opened: string[] = [];
  for (const { method, path } of accountRoutes.filter((route) => !isOpen(route))) {
    await forgetPageViews(service);
    const address = path.replace(":tokenId", tokenId).replace(":month", "2026-01").replace(":grant", newId("grant"));
    const form = { organization: organizationId, token: tokenId, id: newId("tok"), name: "a", scope: "billing" };
    const { text, status } = method === "get" ? await visitor.get(address) : await visitor.post(address, form);
    const isDenied = text.includes("sign in with a token that has the scope billing") || text.startsWith("event: over");
    // Payments are not set up here, so their forms are not found.
    if ((!isDenied && status !== 404) || text.includes(organizationId)) opened.push(`${method} ${path}: ${status}`);
  }
  expect(opened).toEqual([]);
  expect((await visitor.get(`/billing/searches/${foreign}`)).status).toBe(404);
  // The session is still open.
  expect((await visitor.get("/playground")).text).toContain('action="/playground/search"');
});

test("its sign-in leads to the playground, whatever page of the account it asked for", async () => {
  const { token } = await colleague();
  const leads = async (next: string) =>
    (await new PageVisitor(service).post("/billing/sign-in", { token, next })).headers.get("location");
  expect(await leads("/billing")).toBe("/playground");
  expect(await leads("/billing/payments")).toBe("/playground");
  expect(await leads("/billing/searches.csv")).toBe("/playground");
  expect(await leads("/billing/searches?find=tea")).toBe("/billing/searches?find=tea");
});

test("it sees its own searches with their answers, and neither those of other tokens, nor a balance, nor another token", async () => {
  const { organization, token, visitor, foreign } = await colleague();
  const own = await logged(token, "green tea");
  const other = `token=${organization.tokenId}`;
  for (const query of [
    "",
    "?show=charged",
    `?${other}`,
    `?find=secret`,
    `?find=${foreign}`,
    `?find=${foreign}&${other}`,
  ]) {
    const { text, status } = await visitor.get(`/billing/searches${query}`);
    expect([query, status]).toEqual([query, 200]);
    for (const hidden of ["the owner&apos;s secret", organization.tokenId, ".csv"]) expect(text).not.toContain(hidden);
    expect(text.includes(`href="/billing/searches/${foreign}"`)).toBe(false);
  }
  const list = (await visitor.get("/billing/searches")).text;
  expect(list).toContain(own);
  expect(list).not.toContain('href="/billing/payments"');
  const page = await visitor.get(`/billing/searches/${own}`);
  expect(page.status).toBe(200);
  expect(page.text).toContain("green tea");
  expect(page.text).toContain('<ol class="serp');
  expect(page.text).not.toContain("Balance");
});

test("it searches in the playground, and after an error is not led to pages that it cannot open", async () => {
  const { organization, visitor } = await colleague();
  const fields = { organization: organization.organizationId, key: "form-1" };
  expect((await visitor.post("/playground/search", { ...fields, keyword: "coffee" })).status).toBe(200);
  const wrong = await visitor.post("/playground/search", { ...fields, organization: "org_other" });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toContain('href="/playground">Go to the playground');
  const poor = await service.organization({ creditMils: 0, scopes: ["search"] });
  const refused = await (await signIn(service, poor)).post("/playground/search", {
    organization: poor.organizationId,
    key: "form-2",
    keyword: "tea",
  });
  expect(refused.status).toBe(402);
  const missing = await visitor.get(`/billing/searches/${newId("req")}`);
  expect(missing.status).toBe(404);
  expect(missing.text).toContain('href="/billing/searches">Go to your searches');
  for (const { text } of [wrong, refused, missing]) {
    expect(text).not.toContain('href="/billing"');
    expect(text).not.toContain('href="/billing/tokens"');
  }
});
