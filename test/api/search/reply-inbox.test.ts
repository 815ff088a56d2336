import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { ReplyInbox } from "../../../api/search/reply-inbox.ts";
import { compressAnswer } from "../../../shared/compress-answer.ts";
import { sendReply, serializeFailure } from "../../../shared/queue/replies.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

const { redis, server } = await openFreshRedis(afterAll);
const blocking = new Redis(server.url, { maxRetriesPerRequest: null });
const inbox = new ReplyInbox(redis, () => undefined);
const stop = new AbortController();
const reading = inbox.read(blocking, stop.signal);
afterAll(async () => {
  stop.abort();
  await reading;
  blocking.disconnect();
});

const trace = {
  worker: "worker_1",
  provider: "none",
  from: "provider" as const,
  calls: [],
  costMicroUsd: 0,
  queueMs: 0,
  runMs: 0,
};

/** Sends a reply with this entry id, as a Redis would whose clock shows that time. */
async function reply(id: string, requestId: string): Promise<void> {
  const payload = serializeFailure("engine_timeout", {});
  await redis.xadd(inbox.key, id, "head", JSON.stringify({ requestId, trace }), "payload", payload);
}

test("replies arrive after Redis lost the inbox and its clock went back, and none is trimmed unread", async () => {
  const before = inbox.expect("before");
  await reply("5000-0", "before");
  await before;
  const next = inbox.expect("next");
  await reply("6000-0", "next");
  await next;

  await redis.flushall();
  const [first, second] = [inbox.expect("first"), inbox.expect("second")];
  await reply("100-0", "first");
  await reply("200-0", "second");
  expect(await Promise.all([first, second])).toMatchObject([{ outcome: { kind: "failure" } }, {}]);

  // It goes on from there, and trims as before.
  const last = inbox.expect("last");
  await reply("300-0", "last");
  await last;
  await eventually(async () => {
    await reply("*", "unknown");
    return (await redis.xrange(inbox.key, "-", "300-0")).length === 0;
  });
});

test("an answer that was compressed for its key is not compressed again", async () => {
  const requestId = "under a key";
  const arrival = inbox.expect(requestId);
  // Other bytes, to tell which were sent.
  const compressed = await compressAnswer(Buffer.from("those of the key"));
  const outcome = { kind: "answer", requestId, body: Buffer.alloc(20_000), compressed, chargedMils: 5 } as const;
  await sendReply(redis, { inbox: inbox.key, requestId, outcome, trace });
  expect((await arrival).outcome).toMatchObject({ body: Buffer.from("those of the key") });
});

test.each([
  ["10 results", 10_000, 1],
  ["100 results", 60_000, 5],
  ["the largest pages", 2_000_000, 5],
])(
  "an answer of %s, %i bytes, arrives as it was sent, and takes at most 1/%i of them in Redis",
  async (_, bytes, factor) => {
    const line = '{"title":"Crème brûlée, fast","link":"https://example.com/page"},';
    const body = Buffer.from(line.repeat(Math.ceil(bytes / line.length)));
    const requestId = `of ${bytes} bytes`;
    const arrival = inbox.expect(requestId);
    const outcome = { kind: "answer", requestId, body, chargedMils: 5 } as const;
    await sendReply(redis, { inbox: inbox.key, requestId, outcome, trace });
    expect((await arrival).outcome).toEqual(outcome);
    const [[, fields] = ["", []]] = await redis.xrevrangeBuffer(inbox.key, "+", "-", "COUNT", 1);
    expect(body.length / (fields[3]?.length ?? 0)).toBeGreaterThanOrEqual(factor);
  },
);
