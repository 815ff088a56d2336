import { expect, test } from "vitest";
import { expectNoTrace, refusalIn } from "../harness/fixtures/refusals.ts";
import { Operator } from "../harness/processes/operator.ts";
import type { Answer } from "../harness/processes/service.ts";
import { usualService } from "../harness/processes/usual-stack.ts";

/** A running API applies what an operator changes. */

const propagationMs = 2_000;

const service = await usualService();
const operator = new Operator(service);

const search = (token: string) => service.search(token, { keyword: "tea" });
const within2s = (isTrue: () => Promise<boolean>) => service.until(isTrue, propagationMs);
const codeOf = ({ body }: Answer): string => body.error?.code;

test("a new token works at once, and is refused within two seconds of its revocation", async () => {
  const { orgId, token, tokenId } = await operator.create("free");
  expect((await service.usage(token)).body).toEqual({ creditBalanceMils: 1_000, plan: "free" });
  await operator.run("token", "revoke", tokenId);
  await within2s(async () => (await service.usage(token)).status === 401);
  expect(codeOf(await search(token))).toBe("unauthenticated");
  const times = { lastUsedAt: expect.any(String), revokedAt: expect.any(String) };
  expect(await operator.run("token", "list", orgId)).toMatchObject({ tokens: [{ tokenId, ...times }] });
});

test("a suspended organization's searches are refused within two seconds; it reads its usage and can be resumed", async () => {
  const { orgId, token, tokenId } = await operator.create("free");
  expect((await search(token)).status).toBe(200);
  await service.rest(orgId);
  await operator.run("org", "suspend", orgId);
  await within2s(async () => codeOf(await search(token)) === "plan_required");
  const details = { plan: "free", action: "contact_operator", reason: "suspended" };
  const suspended = { organizationId: orgId, token, tokenId };
  const refused = await expectNoTrace(service, suspended, () => search(token));
  expect(refusalIn(refused)).toEqual({ code: "plan_required", details });
  expect((await service.usage(token)).body).toEqual({ creditBalanceMils: 995, plan: "free" });

  await operator.run("org", "resume", orgId);
  await within2s(async () => (await search(token)).status === 200);
});

test("changed terms of a plan apply within two seconds: its rate window and its operations", async () => {
  const terms = (limit: string) => ["--price", "5", "--limit", limit, "--window", "3600", "--concurrency", "2"];
  await operator.run("plan", "set", "trial", ...terms("900"));
  const { token } = await operator.create("trial", "--credit", "50");
  expect((await service.usage(token)).headers.get("ratelimit-policy")).toBe('"default";q=900;w=3600');

  await operator.run("plan", "set", "trial", ...terms("800"), "--operations", "usage.get");
  await within2s(async () => (await service.usage(token)).headers.get("ratelimit-policy") === '"default";q=800;w=3600');
  expect((await search(token)).body.error).toMatchObject({
    code: "plan_required",
    details: { plan: "trial", action: "upgrade" },
  });
});

test("granted credit can be spent at once, even by an organization that had none", async () => {
  const { orgId, token } = await operator.create("payg");
  expect((await service.usage(token)).body.creditBalanceMils).toBe(0);
  await operator.run("credit", "grant", orgId, "250");
  expect((await service.usage(token)).body.creditBalanceMils).toBe(250);
});

test("a change by an operator who cannot reach Redis applies within two seconds", async () => {
  const cutOff = new Operator(service, { REDIS_URL: "redis://127.0.0.1:1" });
  const { token, tokenId } = await operator.create("free");
  expect((await service.usage(token)).status).toBe(200);
  const { exitCode } = await cutOff.try("token", "revoke", tokenId);
  expect(exitCode).toBe(0);
  await within2s(async () => (await service.usage(token)).status === 401);
});
