import { expect, test } from "vitest";
import { shareOf, turnOf, withinShareMax } from "../../../shared/queue/turns.ts";

test("searches within the share of their organization go before all others, the first ones of each before second ones", () => {
  const share = shareOf({ slots: 64, organizations: 11 }); // 5.8
  const turns = [1, 2, 5, 6, 7, 30].map((openSearches) => turnOf(openSearches, { share, comingTurn: 3 }));
  expect(turns).toEqual([0, 1, 4, ...[1, 2, 25].map((rounds) => withinShareMax + rounds)]);
});

test("searches beyond the share wait for rounds from the one that has come", () => {
  const comingTurn = withinShareMax + 100;
  expect(turnOf(3, { share: 2, comingTurn })).toBe(comingTurn + 1);
});

test("an organization alone has all slots", () => {
  expect(shareOf({ slots: 64, organizations: 0 })).toBe(64);
  expect(shareOf({ slots: 64, organizations: 1 })).toBe(64);
});

test("the turn is one that BullMQ takes, however long searches wait without a break", () => {
  expect(turnOf(30, { share: 1, comingTurn: 2 ** 21 - 1 })).toBe(2 ** 21 - 1);
});
