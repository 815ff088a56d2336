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
  for (const bytes of [100, 10_000]) await expect(expandAnswer(randomBytes(bytes))).rejects.toThrow();
});
