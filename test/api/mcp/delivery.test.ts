import { describe, expect, test } from "vitest";
import { Agent, revisionNames } from "../../harness/clients/agent.ts";
import { summed } from "../../harness/assertions/metrics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** An agent is not charged for an answer that it does not get, however it disconnects. */

const service = await usualService();

const slow = { keyword: "sandbox:slow=3000" };

const isHeld = ({ organizationId }: Organization, open = 1) =>
  service.until(async () => (await service.holdsOf(organizationId)).open === open);

async function entriesOf({ organizationId }: Organization) {
  await service.rest();
  return (await service.ledgerOf(organizationId)).map(({ kind, mils, reason }) => ({ kind, mils, reason })).slice(1);
}

describe.each(revisionNames)("an agent that speaks %s", (revision) => {
  test("cancels a search and gets its mils back before the search would have ended", async () => {
    const organization = await service.organization({ creditMils: 100 });
    const agent = await Agent.connect(service, organization.token, { revision });
    const cancelling = new AbortController();
    const search = agent.call("serp.search", slow, { signal: cancelling.signal });
    await isHeld(organization);
    cancelling.abort();
    await expect(search).rejects.toThrow();
    await isHeld(organization, 0);
    expect(await entriesOf(organization)).toEqual([{ kind: "refund", mils: 0, reason: "caller_disconnected" }]);
    expect((await agent.call("usage.get")).body.creditBalanceMils).toBe(100);
    await agent.close();
  });

  test("under a key a cancelled search runs on, is charged once, and stays retrievable", async () => {
    const organization = await service.organization({ creditMils: 100 });
    const agent = await Agent.connect(service, organization.token, { revision });
    const cancelling = new AbortController();
    const meta = { "serpmill/idempotencyKey": "order" };
    const query = { keyword: "sandbox:slow=1000" };
    const search = agent.call("serp.search", query, { signal: cancelling.signal, meta });
    await isHeld(organization);
    cancelling.abort();
    await expect(search).rejects.toThrow();
    const repeat = await agent.call("serp.search", query, { meta });
    expect(repeat).toMatchObject({ isError: false, meta: { "serpmill/idempotencyReplayed": true } });
    expect(await entriesOf(organization)).toEqual([{ kind: "charge", mils: -5, reason: null }]);
    await agent.close();
  });
});

test("a cancel message affects only the agent that sent it, although agents use the same message ids", async () => {
  const organization = await service.organization({ creditMils: 100 });
  const [one, other] = [await older(organization), await older(organization)];
  const cancelling = new AbortController();
  const query = { keyword: "sandbox:slow=1500" };
  const cancelled = one.call("serp.search", query, { signal: cancelling.signal });
  const kept = other.call("serp.search", query);
  await isHeld(organization, 2);
  cancelling.abort();
  await expect(cancelled).rejects.toThrow();
  expect((await kept).isError).toBe(false);
  expect((await entriesOf(organization)).toSorted((a, b) => a.mils - b.mils)).toEqual([
    { kind: "charge", mils: -5, reason: null },
    { kind: "refund", mils: 0, reason: "caller_disconnected" },
  ]);
  await Promise.all([one.close(), other.close()]);
});

test("a call of the older revision that is cancelled gets no message", async () => {
  const organization = await service.organization({ creditMils: 100 });
  const accept = "application/json, text/event-stream";
  const authorization = `Bearer ${organization.token}`;
  const headers = { accept, authorization, "content-type": "application/json", "mcp-session-id": "mcp_1" };
  const post = (message: object) =>
    service.send("/mcp", { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  const called = post({ id: 1, method: "tools/call", params: { name: "serp.search", arguments: slow } });
  await isHeld(organization);
  await post({ method: "notifications/cancelled", params: { requestId: 1 } });
  const answer = await called;
  expect([answer.status, answer.headers.get("content-type"), answer.text]).toEqual([200, "text/event-stream", ""]);
});

const older = ({ token }: Organization) => Agent.connect(service, token, { revision: "2025-11-25" });

test("the log has one line per request, with its cost and without token and keyword", async () => {
  const { organizationId, token } = await service.organization();
  const agent = await Agent.connect(service, token);
  const { body } = await agent.call("serp_search", { keyword: "very private words" });
  await agent.close();
  const [api] = service.apis;
  const lines = () => api?.lines.filter((line) => line.organizationId === organizationId) ?? [];
  await service.until(async () => lines().length === 2);
  expect(lines()).toMatchObject([
    { route: "/mcp", status: 200, method: "server/discover" },
    {
      route: "/mcp",
      method: "tools/call",
      tool: "serp_search",
      outcome: "answered",
      chargedMils: 5,
      requestId: body.requestId,
    },
  ]);
  expect(JSON.stringify(api?.lines)).not.toMatch(new RegExp(`very private words|${token}`));
  expect(await summed(service.apis, 'mcp_calls_total{outcome="answered",tool="search"}')).toBeGreaterThan(0);
});
