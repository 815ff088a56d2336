import type { Way } from "../../harness/servers/proxy.ts";
import type { ClusterProcess, Links } from "./cluster-process.ts";

/** Faults of one process and of its connections. Each starts at once and returns a function that ends it. */

/** How severe a fault is, and which process it affects. */
export interface Degree {
  /** Which of the two processes of a kind. */
  process: 0 | 1;
  /** From 0 to 1. */
  strength: number;
  /** If a connection breaks around a request: whether the request was executed. */
  landed: boolean;
}

export const killed = (process: ClusterProcess) => {
  process.kill();
  return () => process.start();
};
export const frozen = (process: ClusterProcess) => {
  process.freeze();
  return () => process.resume();
};
export const replaced = (process: ClusterProcess) => {
  const done = process.replace();
  return () => done;
};
/** Its clock jumps an hour ahead, and back at the end (clock-jump.ts). */
export const clockJumps = ({ run }: ClusterProcess) => {
  const jump = () => {
    if (run && !run.hasEnded) run.kill("SIGUSR2");
  };
  jump();
  return jump;
};

/** Records that callers may get no answer from this process during the fault. */
export const unreachable =
  (fault: (process: ClusterProcess, degree: Degree) => () => void) => (process: ClusterProcess, degree: Degree) => {
    const span = { fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
    process.unreachable.push(span);
    const end = fault(process, degree);
    return () => {
      end();
      span.toMs = performance.now();
    };
  };

type LinkName = keyof Links;
/** Its connections break, and new ones are refused. */
export const cut = (name: LinkName) => (process: ClusterProcess) => {
  const link = process.links[name];
  link.cut();
  return link.mend;
};
/** Connections stay open and carry nothing. What was sent during the fault arrives late. */
export const silent = (name: LinkName) => (process: ClusterProcess) => {
  const link = process.links[name];
  link.silence("requests", "replies");
  return link.mend;
};
/**
 * One direction is held. Held requests are executed late or never. If replies are held, requests are executed, and their replies
 * arrive late, or never if the connection breaks first.
 */
export const held =
  (direction: Way, name: LinkName) =>
  (process: ClusterProcess, { landed }: Degree) => {
    const link = process.links[name];
    link.silence(direction);
    return () => {
      if (landed) link.reset();
      link.mend();
    };
  };
/** The server's host vanishes and another takes its address. Open connections go silent and are never closed. */
export const hostReplaced = (name: LinkName) => (process: ClusterProcess) => {
  process.links[name].replaceHost();
  return () => undefined;
};
/** Every message is delayed. */
export const slow =
  (name: LinkName) =>
  (process: ClusterProcess, { strength }: Degree) => {
    const link = process.links[name];
    link.delay(10 + 490 * strength);
    return link.mend;
  };
/** One connection breaks around a request that contains one of these texts, and may have been executed. */
export const cutAround =
  (name: LinkName, ...requests: readonly string[]) =>
  (process: ClusterProcess, { landed }: Degree) => {
    const link = process.links[name];
    link.cutAround(requests, landed);
    return link.mend;
  };
