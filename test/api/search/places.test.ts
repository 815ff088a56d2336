import { expect, test } from "vitest";
import { Places } from "../../../api/search/places.ts";
import { newSearchRequest } from "../../../api/search/search-request.ts";
import { query } from "../../harness/fixtures/queries.ts";

const plan = {
  code: "p",
  priceMils: 5,
  windowLimit: 9,
  windowSeconds: 9,
  concurrency: 2,
  unpaidCalls: 50,
  startingGrantMils: 0,
};

const search = (requestId: string, given: { organizationId?: string; key?: string } = {}) =>
  newSearchRequest({
    requestId,
    deadlineStartsAtMs: performance.now(),
    timeoutMs: 30_000,
    caller: {
      organizationId: given.organizationId ?? "org_1",
      tokenId: "tok_1",
      scopes: ["search"],
      suspended: false,
      plan: { ...plan, operations: ["serp.search"] },
    },
    query: query(),
    idempotencyKey: given.key,
    disconnected: new AbortController().signal,
  });

test("an organization has as many places as its plan allows in flight, and gets one back when a search leaves", () => {
  const places = new Places();
  expect(["1", "2", "3"].map((id) => places.take(search(id)))).toEqual([true, true, false]);
  expect(places.take(search("other", { organizationId: "org_2" }))).toBe(true);
  places.leave(search("3"));
  expect(places.take(search("3"))).toBe(false);
  places.leave(search("1"));
  expect(places.take(search("3"))).toBe(true);
});

test("a search that asks again keeps its one place, and a search under a key needs none", () => {
  const places = new Places();
  expect(["1", "1", "1", "2"].map((id) => places.take(search(id)))).toEqual([true, true, true, true]);
  expect(["3", "4"].map((id) => places.take(search(id, { key: id })))).toEqual([true, true]);
  places.leave(search("1"));
  expect(["5", "6"].map((id) => places.take(search(id)))).toEqual([true, false]);
});
