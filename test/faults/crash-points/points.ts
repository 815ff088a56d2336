import { z } from "zod";

/**
 * The steps of a search's path at which a process can be ordered to kill itself. Each is a message that the process sends
 * or an answer that it writes. What it does between two of them has no effect outside, so dying there is the same as
 * dying before the next one.
 */
export const steps = [
  // The API.
  "identity", // Postgres: whose token this is
  "seed", // Postgres: the balance that Redis has no copy of
  "look", // Postgres: whether the key has paid
  "fetch", // Postgres: the answer under the key
  "admit", // Redis: admit.lua
  "enqueue", // Redis: the job
  "arrive", // Redis: the answer is read from the inbox
  "respond", // HTTP: the 200
  "confirm", // Postgres: the answer was delivered
  "poll", // Redis: the outcome of the first request under the key
  "remove", // Redis: the job of a caller who disconnected
  "announce", // Redis: the message to the workers that the caller disconnected
  // The worker.
  "take", // Redis: the worker takes a job
  "lease", // Redis: the lease to call the provider for all equal searches
  "ask", // HTTP: the provider
  "unlease", // Redis: the end of the lease, without waiters
  "answer", // Redis: the answer into the inbox
  "finish", // Redis: the job is done
  "release", // Redis: a stopping worker gives the job back
  // Both, and the maintenance.
  "settle", // Postgres: the deciding entry, and the answer under a key
  "drop", // Redis: settle.lua with holds to end
  "reverse", // Postgres: a charge is given back
  "store", // Redis: settle.lua with nothing but a newer balance
] as const;
export type Step = (typeof steps)[number];

/** Before the message is sent; after half of it, where it is long enough; after its reply has arrived, unread. */
const edges = ["before", "amid", "after"] as const;
export type Edge = (typeof edges)[number];

export interface Point {
  step: Step;
  edge: Edge;
}

/** What a process is ordered: where to die, and in the work for which organization; `null` to stay alive. */
export const orderMessage = z.object({
  order: z.object({ step: z.enum(steps), edge: z.enum(edges), organizationId: z.string() }).nullable(),
});
export type Order = z.infer<typeof orderMessage>["order"];

/** What a process writes before it kills itself, so that a death elsewhere is not taken for an ordered one. */
export const lastWords = ({ step, edge }: Point) => `killed itself ${edge} ${step}\n`;
