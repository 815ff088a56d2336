import { describe, expect, test } from "vitest";
import { type SlotLoad, ConcurrencyController } from "../../worker/concurrency-controller.ts";

/** All slots taken by searches that wait for a provider, with room for more. */
const waiting = (taken: number): SlotLoad => ({
  taken,
  runMs: 1_000,
  queued: 0,
  callsWaiting: 0,
  callsMax: 10_000,
  utilization: 0.3,
  heapShare: 0.1,
});

/** All slots taken by searches of a fast provider, with so many in the queue. */
const fast = (taken: number, queued: number): SlotLoad => ({ ...waiting(taken), runMs: 20, utilization: 0.99, queued });

/** A controller that has risen to 256 of 1,000. */
function risen(): ConcurrencyController {
  const controller = new ConcurrencyController(1_000);
  while (controller.slots < 256) controller.decide(waiting(controller.slots));
  return controller;
}

/** The slots after each of so many decisions on the same load. */
const decide = (controller: ConcurrencyController, load: (slots: number) => SlotLoad, times: number) =>
  Array.from({ length: times }, () => controller.decide(load(controller.slots)));

describe("a worker's slots", () => {
  test("double from 32 to the bound while searches that wait for a provider take all of them", () => {
    expect(decide(new ConcurrencyController(1_000), waiting, 6)).toEqual([64, 128, 256, 512, 1_000, 1_000]);
  });

  test("become more although some are empty for a moment between two searches", () => {
    expect(new ConcurrencyController(1_000).decide(waiting(29))).toBe(64);
  });

  test("may rise to a ceiling of the bound, or of as many calls as providers allow", () => {
    const slotsCeiling = (load: Partial<SlotLoad>) => {
      const controller = new ConcurrencyController(1_000);
      controller.decide({ ...waiting(0), ...load });
      return controller.slotsCeiling;
    };
    expect(slotsCeiling({})).toBe(1_000);
    expect(slotsCeiling({ callsMax: 50 })).toBe(50);
    expect(slotsCeiling({ callsMax: 4 })).toBe(32);
  });

  test("never exceed a bound below 32", () => {
    const controller = new ConcurrencyController(4);
    expect(controller.slots).toBe(4);
    expect(decide(controller, waiting, 2)).toEqual([4, 4]);
  });

  test.each<[string, Partial<SlotLoad>]>([
    ["a tenth of the slots is free", { taken: 28 }],
    ["searches are short and do not wait in the queue", { runMs: 20 }],
    ["calls wait for a slot at a provider", { callsWaiting: 1 }],
    ["the event loop has no room", { utilization: 0.9 }],
    ["the memory has no room", { heapShare: 0.7 }],
  ])("do not become more while %s", (_, load) => {
    expect(new ConcurrencyController(1_000).decide({ ...waiting(32), ...load })).toBe(32);
  });

  test.each<[string, Partial<SlotLoad>]>([
    ["searches are short", { runMs: 20 }],
    ["calls wait for a slot at a provider", { callsWaiting: 1 }],
    ["the event loop has no room", { utilization: 0.9 }],
    ["the memory has no room", { heapShare: 0.7 }],
  ])("have no higher ceiling while %s", (_, load) => {
    const controller = new ConcurrencyController(1_000);
    controller.decide({ ...waiting(0), ...load });
    expect(controller.slotsCeiling).toBe(32);
  });

  test("become fewer, down to 32, while the event loop is busy for a second", () => {
    const busy = (slots: number) => ({ ...waiting(slots), utilization: 0.99 });
    expect(decide(risen(), busy, 8)).toEqual([256, 256, 256, 170, 170, 170, 170, 113]);
    expect(decide(risen(), busy, 100).at(-1)).toBe(32);
  });

  test("become fewer while more calls wait at the provider for a second than half of the slots", () => {
    expect(decide(risen(), (slots) => ({ ...waiting(slots), callsWaiting: slots / 2 }), 8).at(-1)).toBe(256);
    expect(decide(risen(), (slots) => ({ ...waiting(slots), callsWaiting: slots / 2 + 1 }), 8).at(-1)).toBe(113);
  });

  test("of a fast provider double up to 128 while three times as many searches are in the queue", () => {
    expect(decide(new ConcurrencyController(1_000), (slots) => fast(slots, 3 * slots), 4)).toEqual([64, 128, 128, 128]);
    expect(decide(new ConcurrencyController(1_000), (slots) => fast(slots, 3 * slots - 1), 4).at(-1)).toBe(32);
    expect(decide(new ConcurrencyController(40), (slots) => fast(slots, 10 * slots), 4).at(-1)).toBe(40);
  });

  test("of a fast provider become fewer when the queue was short for five seconds", () => {
    expect(decide(risen(), (slots) => fast(slots, slots / 2 - 1), 20).at(-1)).toBe(170);
    expect(decide(risen(), (slots) => fast(slots, slots / 2), 100).at(-1)).toBe(256);
  });

  test("stay when the event loop was busy only now and then", () => {
    const controller = risen();
    for (let round = 0; round < 10; round += 1) {
      decide(controller, (slots) => ({ ...waiting(slots), utilization: 0.99 }), 3);
      decide(controller, (slots) => ({ ...waiting(slots), utilization: 0.9 }), 1);
    }
    expect(controller.slots).toBe(256);
  });

  test("become fewer at once when memory is short", () => {
    const short = (slots: number) => ({ ...waiting(slots), heapShare: 0.7 });
    expect(decide(risen(), short, 3)).toEqual([170, 113, 75]);
  });

  test("become fewer when less than a quarter of them was taken for five seconds", () => {
    const idle = () => waiting(63);
    expect(decide(risen(), idle, 20)).toEqual([...Array.from({ length: 19 }, () => 256), 170]);
    expect(decide(risen(), () => waiting(64), 100).at(-1)).toBe(256);
  });
});
