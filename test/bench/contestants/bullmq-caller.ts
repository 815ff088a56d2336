/** The callers of bare BullMQ. The first message opens the queue; each further message is a load. */
import { Queue, QueueEvents } from "bullmq";
import { z } from "zod";
import { Recorder } from "../load/recorder.ts";
import type { LoadResult } from "../load/load.ts";
import { serve } from "../processes/asked-process.ts";
import { connectionTo, opening, queueName } from "./bullmq-queue.ts";

const answerTimeoutMs = 30_000;
// waitUntilFinished looks the job up, so a few finished jobs must stay.
const kept = { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } };
const loadMessage = z.object({ connections: z.int(), seconds: z.number() });

let parts: { queue: Queue; events: QueueEvents } | undefined;

serve(async (message) => {
  if (parts) return run(parts, loadMessage.parse(message));
  parts = await open(opening.parse(message).port);
  return "ready";
});

async function open(port: number): Promise<{ queue: Queue; events: QueueEvents }> {
  const connection = connectionTo(port);
  const [queue, events] = [new Queue(queueName, { connection }), new QueueEvents(queueName, { connection })];
  // Every waiting caller listens.
  queue.setMaxListeners(0);
  events.setMaxListeners(0);
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
  return { queue, events };
}

async function run(
  { queue, events }: { queue: Queue; events: QueueEvents },
  { connections, seconds }: z.infer<typeof loadMessage>,
): Promise<LoadResult> {
  const recorder = new Recorder();
  const endsAtMs = performance.now() + seconds * 1_000;
  let sent = 0;
  const call = async () => {
    while (performance.now() < endsAtMs && !recorder.hasFailed) {
      const beganAtMs = performance.now();
      sent += 1;
      try {
        const job = await queue.add("search", { keyword: `best coffee ${sent}` }, kept);
        await job.waitUntilFinished(events, answerTimeoutMs);
        recorder.answered(performance.now() - beganAtMs);
      } catch (error) {
        recorder.failed(String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, call));
  return recorder.result();
}
