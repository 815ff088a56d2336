import { z } from "zod";

/**
 * The steps of a search's path at which a process can be made to kill itself, each a question that it sends or an answer
 * that it gives: what it does between two of them has no effect outside, so dying there is dying before the next one.
 */
export const steps = [
  // The API.
  "identity", // Postgres: whose token
  "seed", // Postgres: the balance that Redis has no copy of
  "admit", // Redis: admit.lua
  "enqueue", // Redis: the job
  "arrive", // Redis: the answer is read from the inbox
  "respond", // HTTP: the 200
  "confirm", // Postgres: delivered
  "poll", // Redis: what became of the first request under the key
  "remove", // Redis: the job of a caller who hung up
  // The worker.
  "take", // Redis: a job becomes this worker's
  "claim", // Redis: the right to ask the provider, for all who search for the same
  "ask", // HTTP: the provider
  "unclaim", // Redis: nobody else waits for what came of it
  "answer", // Redis: the answer into the inbox
  "finish", // Redis: the job is done
  "release", // Redis: a stopping worker gives the job back
  // Both, and the caretaker.
  "settle", // Postgres: the deciding entry
  "drop", // Redis: settle.lua with holds to end
  "reverse", // Postgres: a charge is given back
  "store", // Redis: settle.lua with nothing but a newer pair
] as const;
export type Step = (typeof steps)[number];

/** Before it is sent; after half of it, where it is an answer of some length; after its reply has come, unread. */
const edges = ["before", "amid", "after"] as const;
export type Edge = (typeof edges)[number];

export interface Point {
  step: Step;
  edge: Edge;
}

/** What a process is told: where to die, and for whose sake; or not to. */
export const orderMessage = z.object({
  order: z.object({ step: z.enum(steps), edge: z.enum(edges), organizationId: z.string() }).nullable(),
});
export type Order = z.infer<typeof orderMessage>["order"];

/** The last words of a process that killed itself, so that a death elsewhere is not taken for it. */
export const lastWords = ({ step, edge }: Point) => `killed itself ${edge} ${step}\n`;
