import { Redis } from "ioredis";
import { afterAll, beforeEach, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { newId } from "../../shared/ids.ts";
import { DisconnectedSearches } from "../../worker/disconnected-searches.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

const { redis, server } = await openFreshRedis(afterAll);
let searches: DisconnectedSearches;
beforeEach(() => {
  searches = new DisconnectedSearches(redis);
});

const newSearch = () => ({ requestId: newId("req"), organizationId: "org" });

test("a search is disconnected when its caller disconnects while it runs, and no other one", async () => {
  const [gone, other] = [newSearch(), newSearch()];
  const signals = await Promise.all([gone, other].map((search) => searches.begin(search, false)));
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  searches.noteDisconnect(gone.requestId);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
});

test("a message that comes before the worker begins with the search holds for it, and for a second run", async () => {
  const search = newSearch();
  searches.noteDisconnect(search.requestId);
  expect(await searches.begin(search, false)).toMatchObject({ aborted: true });
  searches.end(search);
  expect(await searches.begin(search, false)).toMatchObject({ aborted: true });
});

test("two runs of one search in a worker are disconnected together", async () => {
  const search = newSearch();
  const signals = [await searches.begin(search, false), await searches.begin(search, true)];
  searches.noteDisconnect(search.requestId);
  expect(signals).toMatchObject([{ aborted: true }, { aborted: true }]);
});

test("a search that another worker had before is disconnected if its hold says that its caller left, also without a message", async () => {
  const [left, decided] = [newSearch(), newSearch()];
  await redis.hset(keysOf("org").holds, { [left.requestId]: "00:1:", [decided.requestId]: "0:1:" });
  const aborted = async (search: typeof left, isRepeated: boolean) =>
    (await searches.begin(search, isRepeated)).aborted;
  expect([await aborted(left, true), await aborted(decided, true)]).toEqual([true, false]);
});

test("a search is run when Redis cannot tell whether it was disconnected", async () => {
  const unreachable = new Redis(server.url, { lazyConnect: true, enableOfflineQueue: false });
  expect(await new DisconnectedSearches(unreachable).begin(newSearch(), true)).toMatchObject({ aborted: false });
  unreachable.disconnect();
});
