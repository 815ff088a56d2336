import { writeSync } from "node:fs";
import { type Edge, lastWords, type Order, type Step } from "./points.ts";

let order: Order = null;

export function arm(next: Order): void {
  order = next;
}

/** The edge of this step at which this process has to die, if it is this step. */
export function edgeAt(step: Step): Edge | undefined {
  return order?.step === step ? order.edge : undefined;
}

/** Whether a message concerns the organization of the order. Work for others goes on. */
export const isAbout = (sent: string) => order !== null && sent.includes(order.organizationId);

/** Ends this process as the kernel would: no buffer is flushed and no further line of it runs. */
export function die(): never {
  if (order) writeSync(2, lastWords(order));
  process.kill(process.pid, "SIGKILL");
  for (;;); // The signal may need another thread's turn to arrive.
}
