import { expect, test } from "vitest";
import { InFlightSearches } from "../../../api/search/admission.ts";
import { newSearchRequest } from "../../../api/search/search-request.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { callerWith } from "../../harness/fixtures/caller.ts";

const search = (requestId: string, given: { organizationId?: string; key?: string } = {}) =>
  newSearchRequest({
    requestId,
    deadlineStartsAtMs: performance.now(),
    timeoutMs: 30_000,
    caller: callerWith({ organizationId: given.organizationId ?? "org_1" }, { concurrency: 2 }),
    query: query(),
    idempotencyKey: given.key,
    disconnected: new AbortController().signal,
  });

test("an organization has as many searches in flight as its plan allows, and may run another once one has ended", async () => {
  const inFlight = new InFlightSearches();
  const [first, second, third] = [search("1"), search("2"), search("3")];
  expect([first, second, third].map((request) => inFlight.add(request))).toEqual([true, true, false]);
  expect(inFlight.add(search("other", { organizationId: "org_2" }))).toBe(true);
  third.end();
  await third.ended;
  expect(inFlight.add(search("4"))).toBe(false);
  first.end();
  await first.ended;
  expect(inFlight.add(search("4"))).toBe(true);
});

test("a search that asks again counts once, and a search under a key not at all", async () => {
  const inFlight = new InFlightSearches();
  const first = search("1");
  expect([first, first, first, search("2")].map((request) => inFlight.add(request))).toEqual([true, true, true, true]);
  expect(["3", "4"].map((id) => inFlight.add(search(id, { key: id })))).toEqual([true, true]);
  first.end();
  await first.ended;
  expect(["5", "6"].map((id) => inFlight.add(search(id)))).toEqual([true, false]);
});
