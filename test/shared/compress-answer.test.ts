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

test.each([0, 999, 1_001, 0xff_ff_ff_ff])(
  "an answer of 1,000 bytes that states %i bytes is rejected",
  async (stated) => {
    const compressed = await compressAnswer(randomBytes(1_000));
    compressed.writeUInt32LE(stated, compressed.length - 4);
    await expect(expandAnswer(compressed)).rejects.toThrow();
  },
);
