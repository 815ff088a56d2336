import { afterAll, expect, test } from "vitest";
import { Service } from "../harness/processes/service.ts";
import { startProxy } from "../harness/servers/proxy.ts";

/** The connection between an API and Redis breaks around an admission, so the API cannot know whether the hold was placed. */

const cutAdmissions = 10;

const service = await Service.start({ apis: 0, end: afterAll });
const proxy = await startProxy(service.redisServer.url, afterAll);
await service.startApi({ REDIS_URL: proxy.url });
const organization = await service.organization({ creditMils: 100 });
const search = (keyword: string) => service.search(organization.token, { keyword });
await service.until(async () => (await search("warm")).status === 200);
await service.rest();

const entries = async () => (await service.ledgerOf(organization.organizationId)).slice(2);

/** Sends a search whose admission breaks the connection, and waits until the API has another one. */
async function searchCut(landed: boolean): Promise<void> {
  proxy.cutAround([organization.organizationId], landed);
  const refused = await search("cut");
  expect(refused).toMatchObject({ status: 503, body: { error: { details: { reason: "redis_unreachable" } } } });
  await service.until(async () => (await fetch(`${service.apis[0]?.opsUrl}/readyz`)).ok);
}

test("a hold that was placed although the admission's reply was lost is refunded at once", async () => {
  await searchCut(true);
  await service.until(async () => (await entries()).length === 1);
  expect(await entries()).toMatchObject([{ kind: "refund", reason: "admission_unknown" }]);
  await service.until(async () => (await service.holdsOf(organization.organizationId)).open === 0);
});

test("admissions that never reached Redis leave no entry in the ledger", async () => {
  const before = await entries();
  for (let n = 0; n < cutAdmissions; n += 1) await searchCut(false);
  // A stopping API ends what it began in the background.
  expect(await service.apis[0]?.stop()).toBe(0);
  expect(await entries()).toEqual(before);
  expect(await service.holdsOf(organization.organizationId)).toEqual({ open: 0, heldMils: 0 });
  expect(await service.verify()).toMatchObject({ ok: true });
});
