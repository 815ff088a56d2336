import { expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { refusalIn } from "../harness/fixtures/refusals.ts";
import type { Answer, Organization } from "../harness/processes/service.ts";
import { usualService } from "../harness/processes/usual-stack.ts";
import { asOwner } from "../harness/servers/as-owner.ts";

/** A defect is a 500 and an error in the log, and never looks like a Postgres or Redis that is away. */

const service = await usualService();

const logged = ({ body }: Answer) =>
  service.until(async () =>
    (service.apis[0]?.lines ?? []).some(
      ({ requestId, level, msg }) => requestId === body.requestId && level === 50 && msg === "unhandled error",
    ),
  );

/** Does this while Postgres lacks a table or view, as after a migration that was not run. */
async function without<T>(kind: "table" | "view", name: string, act: () => Promise<T>): Promise<T> {
  const rename = (from: string, to: string) =>
    asOwner(service.databaseUrl, (owner) => owner.query(`alter ${kind} ${from} rename to ${to}`));
  await rename(name, "missing");
  try {
    return await act();
  } finally {
    await rename("missing", name);
  }
}

const search = ({ token }: Organization, options: { key?: string } = {}) =>
  service.search(token, { keyword: "a" }, options);

test.each([
  {
    where: "while a paid key is looked up",
    fail: (payer: Organization) => without("view", "key_payments", () => search(payer, { key: "a" })),
  },
  {
    where: "while a balance is copied to Redis",
    fail: async (payer: Organization) => {
      await service.redis.del(keysOf(payer.organizationId).balance);
      return without("view", "organization_spending", () => search(payer));
    },
  },
  {
    where: "in Redis while a search is admitted",
    fail: async (payer: Organization) => {
      await service.redis.set(keysOf(payer.organizationId).holds, "no hash");
      const answer = await search(payer);
      await service.redis.del(keysOf(payer.organizationId).holds);
      return answer;
    },
  },
])("a defect $where is a 500, and an error in the log", async ({ fail }) => {
  const payer = await service.organization();
  const answer = await fail(payer);
  expect(refusalIn(answer)).toMatchObject({ code: "internal_error" });
  await logged(answer);
  expect((await service.ledgerOf(payer.organizationId)).map(({ kind }) => kind)).toEqual(["grant"]);
});

test("a defect while usage reads a balance is logged, and not called a Postgres that is away", async () => {
  const payer = await service.organization();
  await service.redis.del(keysOf(payer.organizationId).balance);
  const answer = await without("view", "organization_spending", () => service.usage(payer.token));
  expect(refusalIn(answer)).toMatchObject({ details: { reason: "balance_unreadable" } });
  await logged(answer);
});
