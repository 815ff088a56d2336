import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { openMetrics } from "../../../../shared/metrics.ts";
import { countUnreadableRows } from "../../../../worker/providers/policies/unreadable-rows.ts";
import { page } from "./fixtures.ts";

const minuteMs = 60_000;

function open() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line) => lines.push(JSON.parse(line)) });
  const metrics = openMetrics();
  const count = countUnreadableRows({ provider: "serpapi", metrics, log });
  const counted = async () => (await metrics.providerUnreadableRows.get()).values;
  return { count, counted, lines };
}

test("rows that a provider's adapter could not read are counted, and the count begins at 0", async () => {
  const { count, counted } = open();
  const labels = { provider: "serpapi" };
  expect(await counted()).toEqual([{ value: 0, labels }]);
  count(page());
  count({ failure: "unreadable" });
  count(page({ unreadableRows: 2 }));
  count(page({ unreadableRows: 3 }));
  expect(await counted()).toEqual([{ value: 5, labels }]);
});

test("they are logged at once, and then at most once a minute", () => {
  const now = vi.spyOn(performance, "now");
  const { count, lines } = open();
  const at = (ms: number, unreadableRows: number) => {
    now.mockReturnValue(ms);
    count(page({ unreadableRows }));
  };
  at(minuteMs, 1);
  at(minuteMs + 1, 2);
  at(2 * minuteMs - 1, 3);
  at(2 * minuteMs, 4);
  now.mockRestore();
  expect(lines).toMatchObject([
    { provider: "serpapi", rows: 1, leftOut: 0 },
    { provider: "serpapi", rows: 4, leftOut: 2 },
  ]);
});
