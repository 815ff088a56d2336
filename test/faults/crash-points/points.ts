import { z } from "zod";

/**
 * The steps of a search at which a process can be ordered to kill itself. Each is a message or an answer that the process sends.
 * Between two steps nothing has an effect outside, so a death there equals a death before the next step.
 */
export const steps = [
  // The API.
  "identity", // Postgres: whose token this is
  "seed", // Postgres: the balance, if Redis has no copy
  "look", // Postgres: whether the key has paid
  "fetch", // Postgres: the answer under the key
  "admit", // Redis: admit.lua
  "enqueue", // Redis: the job
  "arrive", // Redis: the answer is read from the inbox
  "respond", // HTTP: the 200
  "confirm", // Postgres: the answer was delivered
  "poll", // Redis: the outcome of the first request under the key
  "remove", // Redis: the job of a caller who disconnected
  "announce", // Redis: tells the workers that the caller disconnected
  // The worker.
  "take", // Redis: the worker takes a job, with the lease to call the provider for all equal searches
  "ask", // HTTP: the provider
  "unlease", // Redis: the end of a lease without waiters
  "answer", // Redis: the answer into the inbox
  "finish", // Redis: the job is done
  "release", // Redis: a stopping worker hands the job back
  // Both, and the maintenance.
  "settle", // Postgres: the deciding entry, and the answer under a key
  "drop", // Redis: settle.lua with holds to end
  "reverse", // Postgres: a charge is reversed
  "store", // Redis: settle.lua with nothing but a newer balance
] as const;
export type Step = (typeof steps)[number];

/** Before the message is sent; after half of it, if it is long; after its reply has arrived, unread. */
const edges = ["before", "amid", "after"] as const;
export type Edge = (typeof edges)[number];

export interface Point {
  step: Step;
  edge: Edge;
}

/** An order: at which step to die, in the work for which organization; `null` to stay alive. */
export const orderMessage = z.object({
  order: z.object({ step: z.enum(steps), edge: z.enum(edges), organizationId: z.string() }).nullable(),
});
export type Order = z.infer<typeof orderMessage>["order"];

/** A process writes this before it kills itself, so that another death is not mistaken for the ordered one. */
export const lastWords = ({ step, edge }: Point) => `killed itself ${edge} ${step}\n`;
