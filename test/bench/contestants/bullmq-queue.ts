import { z } from "zod";

/** What both processes of bare BullMQ agree on. */
export const queueName = "bare";

/** The first message to either process: where Redis is, and the answer to every job. */
export const opening = z.object({ port: z.int(), answer: z.unknown() });

export const connectionTo = (port: number) => ({ host: "127.0.0.1", port, maxRetriesPerRequest: null });
