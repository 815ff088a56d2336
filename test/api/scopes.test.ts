import { beforeEach, describe, expect, test } from "vitest";
import { headerScopes, publishIdentityChange, type Scope } from "../../shared/organizations/organizations.ts";
import { Agent } from "../harness/clients/agent.ts";
import { forgetSignIns, type LiveEvent, PageVisitor } from "../harness/clients/page-visitor.ts";
import { challenges, endlessWindow, expectNoTrace, refusalIn } from "../harness/fixtures/refusals.ts";
import { startStripeService } from "../harness/processes/stripe-stack.ts";
import { asOwner } from "../harness/servers/as-owner.ts";

/** What a token may do, at every door of the API. */

const { stub, service } = await startStripeService({ workers: 0, settings: { PUBLIC_URL: "http://localhost:3000" } });
beforeEach(() => forgetSignIns(service));

const without = (missing: Scope) => headerScopes.filter((scope) => scope !== missing);
const organizationWithout = (missing: Scope) =>
  service.organization({ scopes: without(missing), terms: endlessWindow });
const missing = (scope: Scope) => ({ code: "unauthenticated", details: { reason: "scope", scope } });

const operations = [
  { door: "POST /v1/serp/search", scope: "search", send: (token: string) => service.search(token, { keyword: "a" }) },
  { door: "GET /v1/usage", scope: "usage", send: (token: string) => service.usage(token) },
] as const;

test.each(operations)("$door without the scope $scope is a 401 that names it, and takes nothing", async (operation) => {
  const organization = await organizationWithout(operation.scope);
  const answer = await expectNoTrace(service, organization, () => operation.send(organization.token));
  expect(refusalIn(answer)).toEqual(missing(operation.scope));
  const challenge = `${challenges.missing}, error="insufficient_scope", scope="${operation.scope}"`;
  expect(answer.headers.get("www-authenticate")).toBe(challenge);
});

test.each([
  { tool: "serp.search", scope: "search", query: { keyword: "a" } },
  { tool: "serp_search", scope: "search", query: { keyword: "a" } },
  { tool: "usage.get", scope: "usage", query: {} },
  { tool: "usage_get", scope: "usage", query: {} },
] as const)(
  "the tool $tool without the scope $scope is listed, fails as over REST, and takes nothing",
  async (given) => {
    const organization = await organizationWithout(given.scope);
    const agent = await Agent.connect(service, organization.token);
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name)).toContain(given.tool);
    const refused = await expectNoTrace(service, organization, () => agent.call(given.tool, given.query));
    expect(refused).toMatchObject({ isError: true, body: { error: missing(given.scope) } });
    expect(refused.texts.at(-1)).toContain(`this token lacks the scope \`${given.scope}\``);
    await agent.close();
  },
);

test("a sign-in without the scopes billing and search is a 401 that says so, and opens no session", async () => {
  const { token, tokenId } = await service.organization({ scopes: ["usage"] });
  const visitor = new PageVisitor(service);
  const answer = await visitor.signIn(token);
  expect(answer.status).toBe(401);
  expect(answer.text).toContain("it lacks the scope billing");
  expect(visitor.setCookie).toBeUndefined();
  const lines = () => service.apis.flatMap((api) => api.lines.filter((line) => line.tokenId === tokenId));
  await service.until(async () => lines().length > 0);
  expect(lines()).toMatchObject([{ route: "/billing/sign-in", status: 401, outcome: "refused" }]);
});

/** Signed in with a token that loses the scope afterwards: what opened the session says nothing about the next request. */
async function signedInWithout(): Promise<{
  visitor: PageVisitor;
  organizationId: string;
  loseScope: () => Promise<void>;
}> {
  const { token, tokenId, organizationId } = await service.organization();
  const visitor = new PageVisitor(service);
  expect(await visitor.signIn(token)).toMatchObject({ status: 303 });
  const loseScope = async () => {
    await asOwner(service.databaseUrl, (client) =>
      client.query("update tokens set scopes = '{usage}' where id = $1", [tokenId]),
    );
    await publishIdentityChange(service.redis);
    // Once the API refuses the search, it has forgotten both scopes.
    await service.until(async () => (await service.search(token, { keyword: "a" })).status === 401);
  };
  return { visitor, organizationId, loseScope };
}

describe("a session whose token lacks the scope billing", () => {
  const over = "event: over\ndata:\n\n";

  test.each([
    { path: "/billing", status: 200, says: "it lacks the scope billing" },
    { path: "/billing/searches.csv", status: 401, says: "it lacks the scope billing" },
    { path: "/billing/live", status: 200, says: over },
  ])("GET $path shows nothing of the account", async ({ path, status, says }) => {
    const { visitor, organizationId, loseScope } = await signedInWithout();
    await loseScope();
    const answer = await visitor.get(path);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(says);
    expect(answer.text).not.toContain(organizationId);
    // The page and the export end the session; a stream leaves that to the next view.
    expect(visitor.cookie === undefined).toBe(path !== "/billing/live");
  });

  test("no payment begins", async () => {
    const { visitor, organizationId, loseScope } = await signedInWithout();
    await loseScope();
    const answer = await visitor.post("/billing/topup", { organization: organizationId, mils: "10000" });
    expect(answer.status).toBe(401);
    expect(answer.text).toContain("it lacks the scope billing");
    expect(stub.sessions).toEqual([]);
  });

  test("a stream that is open ends", async () => {
    const { visitor, loseScope } = await signedInWithout();
    const { events } = await visitor.follow();
    await events.next();
    await loseScope();
    let last: LiveEvent | undefined;
    for await (const event of events) last = event;
    expect(last).toEqual({ event: "over" });
  });
});

test.each(headerScopes)("the scope %s alone opens its own doors", async (scope) => {
  const { token } = await service.organization({ scopes: [scope] });
  const doors = await openDoors(token);
  const pages = { search: "/playground", usage: null, billing: "/billing" };
  expect(doors).toEqual({ search: scope === "search", usage: scope === "usage", page: pages[scope] });
});

/** Without a worker, 503 is the furthest that a search can get. */
async function openDoors(token: string): Promise<{ search: boolean; usage: boolean; page: string | null }> {
  const visitor = new PageVisitor(service);
  const search = (await service.search(token, { keyword: "a" })).status === 503;
  const usage = (await service.usage(token)).status === 200;
  const page = (await visitor.signIn(token)).headers.get("location");
  return { search, usage, page };
}
