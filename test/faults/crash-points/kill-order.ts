import { writeSync } from "node:fs";
import { type Edge, lastWords, type Order, type Step } from "./points.ts";

/** Where this process has been told to die. */
let order: Order = null;

export function arm(next: Order): void {
  order = next;
}

/** The edge of this step at which to die, if it is this step. */
export function edgeAt(step: Step): Edge | undefined {
  return order?.step === step ? order.edge : undefined;
}

/** Whether something that is sent is about the organization for whose sake to die: other work goes on beside it. */
export const isAbout = (sent: string) => order !== null && sent.includes(order.organizationId);

/** Ends this process as the kernel would: nothing is flushed, nobody is told, no further line of it runs. */
export function die(): never {
  if (order) writeSync(2, lastWords(order));
  process.kill(process.pid, "SIGKILL");
  for (;;); // The signal may take another thread's turn to arrive.
}
