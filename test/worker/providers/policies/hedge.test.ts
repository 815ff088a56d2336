import { expect, test } from "vitest";
import { cancelLosers, mayHedge, resultOrHedgeDue } from "../../../../worker/providers/policies/hedge.ts";
import type { Availability } from "../../../../worker/providers/policies/provider-client.ts";
import { attemptFor, farMs } from "./fixtures.ts";

function provider(availability: Availability, hedgesLeft: number) {
  return {
    availability: () => availability,
    reserveHedge: () => hedgesLeft-- > 0,
    hedgesLeft: () => hedgesLeft,
  };
}

test("a provider is hedged to only if it is ready and has retry budget left, which is then taken", () => {
  const ready = provider("ready", 1);
  expect([mayHedge(ready), mayHedge(ready)]).toEqual([true, false]);
  expect(mayHedge(undefined)).toBe(false);
});

test.each<Availability>(["saturated", "open"])(
  "a provider that is %s is not hedged to, and keeps its budget",
  (state) => {
    const unavailable = provider(state, 1);
    expect(mayHedge(unavailable)).toBe(false);
    expect(unavailable.hedgesLeft()).toBe(1);
  },
);

test("a hedge is due when there is no result in time", async () => {
  expect(await resultOrHedgeDue(new Promise(() => undefined), 1)).toBe("hedge_due");
  expect(await resultOrHedgeDue(Promise.resolve("result"), farMs)).toBe("result");
});

test("of the losers, attempts that started before the winner are outrun, later ones unneeded", () => {
  const [first, winner, last] = [attemptFor(), attemptFor(), attemptFor()];
  cancelLosers(winner, [first, winner, last]);
  const reasons = [first, winner, last].map(({ cancellation }) => cancellation.signal.reason);
  expect(reasons).toEqual([{ failure: "outrun" }, undefined, { failure: "unneeded" }]);
});
