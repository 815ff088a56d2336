/** The worker of bare BullMQ: it returns the same answer to every job. */
import { Worker } from "bullmq";
import { serve } from "../processes/asked-process.ts";
import { connectionTo, opening, queueName } from "./bullmq-queue.ts";

const concurrency = 32;

serve(async (message) => {
  const { port, answer } = opening.parse(message);
  const worker = new Worker(queueName, async () => answer, { connection: connectionTo(port), concurrency });
  await worker.waitUntilReady();
  return "ready";
});
