import type { Way } from "../../harness/servers/proxy.ts";
import type { Slot } from "./slot.ts";

/** What can be done to one process and its ways. Each begins at once and returns what ends it. */

/** How much of a fault, and where. */
export interface Degree {
  place: 0 | 1;
  /** From 0 to 1. */
  strength: number;
  landed: boolean;
}

export const killed = (slot: Slot) => {
  slot.kill();
  return () => slot.start();
};
export const frozen = (slot: Slot) => {
  slot.process?.kill("SIGSTOP");
  return () => slot.process?.kill("SIGCONT");
};
export const replaced = (slot: Slot) => {
  const done = slot.replace();
  return () => done;
};
/** Its clock is an hour ahead (clock-jump.ts). */
export const clockJumps = (slot: Slot) => {
  const { process } = slot;
  if (process && !process.hasEnded) process.kill("SIGUSR2");
  return () => void (process && !process.hasEnded && process.kill("SIGUSR2"));
};

/** Notes that callers cannot count on this process meanwhile: nothing it does could reach them in time. */
export const unreachable = (hurt: (slot: Slot, degree: Degree) => () => void) => (slot: Slot, degree: Degree) => {
  const span = { fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
  slot.unwell.push(span);
  const end = hurt(slot, degree);
  return () => {
    end();
    span.toMs = performance.now();
  };
};

type WayName = keyof Slot["ways"];
/** Its connections break, and it gets no new ones. */
export const cut = (name: WayName) => (slot: Slot) => {
  const way = slot.ways[name];
  way.cut();
  return way.mend;
};
/** Nothing passes, and nobody is told; what was sent meanwhile arrives late. */
export const silent = (name: WayName) => (slot: Slot) => {
  const way = slot.ways[name];
  way.silence("requests", "replies");
  return way.mend;
};
/**
 * One direction is cut. Replies held: what was asked is done, and the answer comes late, or never where the connection
 * breaks before. Requests held: what was asked is done late, or never.
 */
export const held =
  (which: Way, name: WayName) =>
  (slot: Slot, { landed }: Degree) => {
    const way = slot.ways[name];
    way.silence(which);
    return () => {
      if (landed) way.reset();
      way.mend();
    };
  };
/** Everything takes its time. */
export const far =
  (name: WayName) =>
  (slot: Slot, { strength }: Degree) => {
    const way = slot.ways[name];
    way.delay(10 + 490 * strength);
    return way.mend;
  };
/** One connection breaks around this request: it was carried out, or it was not. */
export const cutAround =
  (name: WayName, request: string) =>
  (slot: Slot, { landed }: Degree) => {
    const way = slot.ways[name];
    way.cutAround(Buffer.from(request), landed);
    return way.mend;
  };
