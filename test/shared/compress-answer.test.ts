import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { compressAnswer, expandAnswer } from "../../shared/compress-answer.ts";

test.each([100, 1_000, 60_000, 70_000, 1_000_000])(
  "an answer of %i incompressible bytes comes back as it was",
  async (bytes) => {
    const body = randomBytes(bytes);
    expect(await expandAnswer(await compressAnswer(body))).toEqual(body);
  },
);

test("bytes that no worker compressed are rejected", async () => {
  for (const bytes of [0, 3, 100, 10_000]) await expect(expandAnswer(randomBytes(bytes))).rejects.toThrow();
});

test("an answer that was cut off is rejected", async () => {
  const compressed = await compressAnswer(randomBytes(1_000));
  await expect(expandAnswer(compressed.subarray(0, -3))).rejects.toThrow();
});

test("an answer that has changed by one bit is rejected", async () => {
  const compressed = await compressAnswer(randomBytes(1_000));
  compressed.writeUInt8(compressed.readUInt8(500) ^ 1, 500);
  await expect(expandAnswer(compressed)).rejects.toThrow();
});

test("an answer that would expand to more than 64 MiB is rejected", async () => {
  const compressed = await compressAnswer(Buffer.alloc(64 * 1024 * 1024 + 1));
  await expect(expandAnswer(compressed)).rejects.toThrow();
});
