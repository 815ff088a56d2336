import { createHash } from "node:crypto";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { crc32 } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { openAuthentication } from "../../api/identify.ts";
import { readConfig } from "../../shared/config.ts";
import { openLog } from "../../shared/log.ts";
import { openContext } from "../../shared/process/context.ts";
import { newToken } from "../../api/tokens/tokens.ts";
import { summed } from "../harness/assertions/metrics.ts";
import { refusalIn } from "../harness/fixtures/refusals.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { usualService } from "../harness/processes/usual-stack.ts";

const log = openLog({ name: "test", level: "silent" });
const service = await usualService({ apis: 2 });

// The contract: a revocation takes effect in every process within this time.
const revokedWithinMs = 2_000;

async function isRefusedEverywhere(token: string): Promise<boolean> {
  const statuses = await Promise.all(service.apis.map(async (_, api) => (await service.usage(token, api)).status));
  return statuses.every((status) => status === 401);
}

test("a token names its kind, is random, and ends in a checksum that a scanner can verify", () => {
  const tokens = Array.from({ length: 100 }, newToken);
  expect(new Set(tokens).size).toBe(100);
  for (const token of tokens) {
    expect(token).toMatch(/^smk_[a-z0-9]{39}$/);
    expect(token.slice(-7)).toBe(crc32(token.slice(0, -7)).toString(36).padStart(7, "0"));
  }
});

test("the database stores only a token's SHA-256 and its last four characters", async () => {
  const { token, tokenId } = await service.organization();
  const { rows } = await service.database.query("select * from tokens where id = $1", [tokenId]);
  expect(rows[0]).toMatchObject({ hash: createHash("sha256").update(token).digest(), last4: token.slice(-4) });
  expect(JSON.stringify(rows)).not.toContain(token.slice(4, -4));
});

const expire = (tokenId: string) =>
  asOwner(service.databaseUrl, (client) =>
    client.query("update tokens set expires_at = now() where id = $1", [tokenId]),
  );

test("a token works until it expires", async () => {
  const { organizationId } = await service.organization();
  const { token, tokenId } = await service.issue(organizationId, { expiresInDays: 1 });
  expect(await service.usage(token)).toMatchObject({ status: 200 });
  await expire(tokenId);
  await service.until(() => isRefusedEverywhere(token), revokedWithinMs);
});

test("a token in use is looked up again before its next request", async () => {
  const { token } = await service.organization();
  const lookups = () => summed(service.apis, 'token_lookups_total{lane="known",outcome="valid"}');
  expect(await service.usage(token)).toMatchObject({ status: 200 });
  const before = await lookups();
  await service.until(async () => (await lookups()) >= before + 2);
});

test("of many 401s in a second all beyond a hundred come a quarter of a second late, so that a flood of tokens is slow", async () => {
  const settings = { DATABASE_URL: service.processDatabaseUrl, REDIS_URL: service.redisServer.url };
  const config = readConfig({ ...settings, SERP_PROVIDERS: "sandbox" });
  const context = openContext({ config, name: "api", databaseSizeMax: 1, log });
  onTestFinished(() => context.shutdown.run(log));
  const { authenticate } = openAuthentication(context);
  const withoutToken = new IncomingMessage(new Socket());
  let refused = 0;
  const beganAtMs = performance.now();
  const all = Array.from({ length: 300 }, () => authenticate(withoutToken).catch(() => (refused += 1)));
  // No timer runs between microtasks.
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  // More than a hundred only if another second has begun amid them.
  expect(refused).toBeGreaterThanOrEqual(100);
  expect(refused).toBeLessThanOrEqual(200);
  await Promise.all(all);
  expect(refused).toBe(300);
  expect(performance.now() - beganAtMs).toBeGreaterThanOrEqual(240);
});

/** Runs `meanwhile` while a lock on the table blocks every token lookup. */
async function whileLookupsBlock(meanwhile: () => Promise<void>): Promise<void> {
  await asOwner(service.databaseUrl, async (client) => {
    await client.query("begin");
    await client.query("lock table tokens in access exclusive mode");
    await meanwhile();
  });
}

test("a token with a wrong checksum is rejected without a lookup", async () => {
  await whileLookupsBlock(async () => {
    const misspelled = newToken().replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    expect(refusalIn(await service.usage(misspelled))).toMatchObject({ code: "unauthenticated" });
    // A token with a valid checksum needs a lookup, which is blocked.
    const answer = await service.usage(newToken());
    expect(refusalIn(answer)).toEqual({
      code: "unavailable",
      details: { reason: "postgres_unreachable", retryAfterMs: 1_000 },
    });
  });
});

test("every plan allows usage", async () => {
  const { token } = await service.organization({ creditMils: 0, terms: { operations: ["serp.search"] } });
  expect(await service.usage(token)).toMatchObject({ status: 200, body: { creditBalanceMils: 0 } });
});
