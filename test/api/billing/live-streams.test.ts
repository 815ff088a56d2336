import { expect, test } from "vitest";
import { LiveStreams } from "../../../api/billing/frame/live-updates.ts";
import { openMetrics } from "../../../shared/metrics.ts";

/** The streams of live updates of one process. */

test("a few organizations leave streams for those that have none, up to the bound of the process", () => {
  const streams = new LiveStreams(openMetrics());
  const open = (organization: number, session = 0) => {
    try {
      return [streams.enter(`session ${organization} ${session}`, `organization ${organization}`)];
    } catch {
      return [];
    }
  };
  const repeated = (times: number, each: (n: number) => (() => void)[]) =>
    Array.from({ length: times }, (_, n) => each(n)).flat();
  // Each asks for five streams in each of four sessions. The last two get their first one beyond the 50.
  const crowd = repeated(5, (organization) => repeated(20, (n) => open(organization, Math.floor(n / 5))));
  expect(crowd).toHaveLength(52);
  expect(repeated(50, (n) => open(10 + n))).toHaveLength(48);
  crowd.at(-1)?.();
  expect(open(60)).toHaveLength(1);
});

test("an update of one organization waits for one read of another, not for those of all its streams", async () => {
  const streams = new LiveStreams(openMetrics());
  const order: string[] = [];
  const read = (organization: string) => streams.read(organization, async () => order.push(organization));
  await Promise.all(["many", "many", "many", "few"].map(read));
  expect(order).toEqual(["many", "few", "many", "many"]);
});
