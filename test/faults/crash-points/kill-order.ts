import { writeSync } from "node:fs";
import { type Edge, lastWords, type Order, type Step } from "./points.ts";

let order: Order = null;

export function arm(next: Order): void {
  order = next;
}

/** The edge at which this process has to die, if the order names this step. */
export function edgeAt(step: Step): Edge | undefined {
  return order?.step === step ? order.edge : undefined;
}

/** Whether a message is about the organization of the order. Other work continues. */
export const isAbout = (sent: string) => order !== null && sent.includes(order.organizationId);

/** Kills this process: no buffer is flushed and no further line runs. */
export function die(): never {
  if (order) writeSync(2, lastWords(order));
  process.kill(process.pid, "SIGKILL");
  for (;;); // The signal may take a moment to arrive.
}
