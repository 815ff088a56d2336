import { afterAll, expect, test } from "vitest";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import { newToken } from "../../api/tokens/tokens.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";
import { besidePostgres } from "../harness/servers/beside-postgres.ts";
import { startProxy } from "../harness/servers/proxy.ts";

/** A flood of made-up tokens with right checksums, at an API whose Postgres is some milliseconds away. */

const delayMs = 30;
const sockets = 96;
const honest = 6;
const rounds = 5;
// A lookup is given up after 1,500 ms. Where a connection to Postgres takes this long, a round says nothing.
const connectMsMax = 500;

const service = await Service.start({ apis: 0 });
const postgres = await startProxy(service.databaseUrl);
const api = await service.startApi({ DATABASE_URL: postgres.url });
await service.until(async () => ((await Exposition.of(api)).value("workers_reporting") ?? 0) > 0);
afterAll(async () => {
  await service.stop();
  await postgres.close();
});

test("while a flood of made-up tokens comes in, no search of a caller fails, whether its token is known or new", async () => {
  const known = await Promise.all(Array.from({ length: honest }, () => service.organization()));
  for (const { token } of known)
    expect(await service.search(token, { keyword: "coffee" })).toMatchObject({ status: 200 });
  postgres.delay(delayMs);
  const over = new AbortController();
  const refused = new Map<number, number>();
  const flood = Array.from({ length: sockets }, async () => {
    while (!over.signal.aborted) {
      const { status } = await service.usage(newToken());
      refused.set(status, (refused.get(status) ?? 0) + 1);
    }
  });
  await service.until(async () => (refused.get(401) ?? 0) + (refused.get(503) ?? 0) > sockets);

  const refusals: unknown[] = [];
  for (let round = 0; round < rounds; ) {
    // An operator changed something: every API forgets every token, and has to look them all up again.
    await publishIdentityChange(service.redis);
    const tokens = [...known, await service.organization()].map(({ token }) => token);
    const { value: answers, longestMs } = await besidePostgres(postgres.url, () =>
      Promise.all(tokens.map((token, nth) => service.search(token, { keyword: `${round}/${nth}` }))),
    );
    const failed = answers.filter(({ status }) => status !== 200);
    if (failed.length > 0 && longestMs > connectMsMax) continue;
    refusals.push(...failed.map(({ body }) => body));
    round += 1;
  }
  over.abort();
  await Promise.all(flood);
  postgres.mend();
  expect(refusals).toEqual([]);
  // On a slow machine so many tokens may wait that a further made-up one gets a 503.
  expect([...refused.keys()].filter((status) => status !== 503)).toEqual([401]);
  const lookups = (await Exposition.of(api)).all("token_lookups_total");
  expect(lookups['{lane="new",outcome="valid"}']).toBeGreaterThanOrEqual(honest + rounds);
  await service.rest();
});
