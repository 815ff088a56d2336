import { expect, test } from "vitest";
import type { SlotClaim } from "../../../../worker/providers/policies/attempt.ts";
import { SlotTurns } from "../../../../worker/providers/policies/bulkhead.ts";

/** Organizations that always have a call waiting, each with so many open searches, at a provider with one slot. */
function grantsTo(openSearches: Record<string, number>, slots: number): Record<string, number> {
  const turns = new SlotTurns();
  const grants = Object.fromEntries(Object.keys(openSearches).map((organizationId) => [organizationId, 0]));
  const enter = (organizationId: string) => {
    const claim = { organizationId, openSearches: openSearches[organizationId] ?? 0 };
    turns.enter({ claim, deadlineAtMs: 0, start: () => turns.started(claim) });
  };
  for (const organizationId of Object.keys(openSearches)) enter(organizationId);
  for (let slot = 0; slot < slots; slot += 1) {
    const call = turns.next();
    if (!call) throw new Error("no call waits");
    const { organizationId } = call.claim;
    grants[organizationId] = (grants[organizationId] ?? 0) + 1;
    enter(organizationId);
    call.start();
    turns.leave(call);
    turns.ended(call.claim);
  }
  return grants;
}

const tenTimes = (prefix: string, openSearches: number) =>
  Object.fromEntries(Array.from({ length: 10 }, (_, count) => [`${prefix}${count}`, openSearches]));

test("an organization with one search gets every second slot, however many others have more", () => {
  const { one } = grantsTo({ ...tenTimes("crowd", 30), one: 1 }, 100);
  expect(one).toBeGreaterThanOrEqual(50);
});

test("an organization with many searches gets half of an equal part, however many others have one", () => {
  const { many } = grantsTo({ ...tenTimes("small", 1), many: 30 }, 220);
  expect(many).toBeGreaterThanOrEqual(10);
});

test("organizations that have equally many searches get equally many slots", () => {
  expect(new Set(Object.values(grantsTo(tenTimes("equal", 5), 100)))).toEqual(new Set([10]));
});

test("an organization with one search left has one, however many it had before", () => {
  const turns = new SlotTurns();
  const start = () => undefined;
  const [many, one, other] = [
    { organizationId: "steady", openSearches: 100 },
    { organizationId: "steady", openSearches: 1 },
    { organizationId: "other", openSearches: 2 },
  ];
  const waited = { claim: many, deadlineAtMs: 0, start };
  turns.enter(waited);
  turns.started(one);
  turns.leave(waited);
  turns.started(many);
  turns.ended(many);
  for (const claim of [other, one]) turns.enter({ claim, deadlineAtMs: 0, start });
  expect(turns.next()?.claim).toBe(one);
});

test("an organization that turns out to have more searches open while its calls wait goes behind one with fewer", () => {
  const turns = new SlotTurns();
  const start = () => undefined;
  const [first, second] = ["first", "second"].map((organizationId) => ({ organizationId, openSearches: 1 }));
  if (!first || !second) throw new Error("two claims");
  for (const claim of [first, second]) turns.enter({ claim, deadlineAtMs: 0, start });
  first.openSearches = 30;
  expect(turns.next()?.claim).toBe(second);
});

test("an organization that waits again is owed nothing for the time before", () => {
  const turns = new SlotTurns();
  const claims = ["steady", "rare"].map((organizationId) => ({ organizationId, openSearches: 1 }));
  const [steady, rare] = claims;
  if (!steady || !rare) throw new Error("two claims");
  turns.started(rare); // One call that runs long.
  for (let calls = 0; calls < 1_000; calls += 1) turns.started(steady);
  const start = () => undefined;
  for (let calls = 0; calls < 20; calls += 1)
    for (const claim of claims) turns.enter({ claim, deadlineAtMs: 0, start });
  let rareFirst = 0;
  for (let slot = 0; slot < 20; slot += 1) {
    const call = turns.next();
    if (!call) throw new Error("no call waits");
    turns.started(call.claim);
    turns.leave(call);
    if (call.claim === rare) rareFirst += 1;
  }
  expect(rareFirst).toBeLessThanOrEqual(11);
});

test("an organization whose calls are slow leaves another one that has as many searches its share of the slots", () => {
  const turns = new SlotTurns();
  const organizations = { slow: { openSearches: 40, ticks: 20 }, quick: { openSearches: 40, ticks: 1 } };
  const enter = (organizationId: keyof typeof organizations) => {
    const { openSearches, ticks } = organizations[organizationId];
    const claim = { organizationId, openSearches };
    turns.enter({ claim, deadlineAtMs: 0, start: () => running.push({ claim, organizationId, ticks }) });
  };
  let running: { claim: SlotClaim; organizationId: keyof typeof organizations; ticks: number }[] = [];
  for (let call = 0; call < 20; call += 1) for (const name of ["slow", "quick"] as const) enter(name);
  let quickCalls = 0;
  for (let tick = 0; tick < 100; tick += 1) {
    for (const call of running) call.ticks -= 1;
    for (const { claim } of running.filter(({ ticks }) => ticks === 0)) turns.ended(claim);
    running = running.filter(({ ticks }) => ticks > 0);
    while (running.length < 10) {
      const next = turns.next();
      if (!next) throw new Error("no call waits");
      next.start();
      turns.started(next.claim);
      turns.leave(next);
      enter(running.at(-1)?.organizationId ?? "slow");
    }
    quickCalls += running.filter(({ organizationId }) => organizationId === "quick").length;
  }
  expect(quickCalls).toBeGreaterThanOrEqual(4 * 100);
});

test("the oldest search of an organization goes first, and its pages in order", () => {
  const turns = new SlotTurns();
  const claim = { organizationId: "one", openSearches: 2 };
  const order = ["newer", "older 1", "older 2"].map((name) => {
    const call = { claim, deadlineAtMs: name === "newer" ? 2 : 1, start: () => undefined };
    turns.enter(call);
    return { name, call };
  });
  const seen: string[] = [];
  for (let next = turns.next(); next; next = turns.next()) {
    seen.push(order.find(({ call }) => call === next)?.name ?? "");
    turns.leave(next);
  }
  expect(seen).toEqual(["older 1", "older 2", "newer"]);
});
