import { expect, test } from "vitest";
import { IdentityCache } from "../../api/identity-cache.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { callerWith } from "../harness/fixtures/caller.ts";

/** What a token costs in lookups, with a stand-in for Postgres and a clock that the test moves. */

const caller = callerWith();

/** A cache with the tokens that Postgres was asked for, and the answer that it gives. */
function openCache() {
  const asked: string[] = [];
  const postgres = { answer: (): Promise<Caller | undefined> => Promise.resolve(caller) };
  const find = (tokenHash: string) => {
    asked.push(tokenHash);
    return postgres.answer();
  };
  let nowMs = 1_000;
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { cache: new IdentityCache({ find }, { now: () => nowMs }), asked, postgres, pass };
}

test("a token that is used every few seconds is looked up in the background, and no request waits for it", async () => {
  const { cache, asked, pass } = openCache();
  await cache.find("used");
  for (let second = 0; second < 9; second += 1) {
    pass(1_000);
    await cache.renew();
  }
  expect(asked).toHaveLength(10);
  expect(await cache.find("used")).toBe(caller);
  expect(asked).toHaveLength(10);
});

test("without a renewal what is known of a token lasts 1.5 s", async () => {
  const { cache, asked, pass } = openCache();
  await cache.find("used");
  pass(1_400);
  await cache.find("used");
  expect(asked).toHaveLength(1);
  pass(200);
  await cache.find("used");
  expect(asked).toHaveLength(2);
});

test("a lookup that runs while an operator changes something still serves its caller, and is not remembered", async () => {
  const { cache, asked, postgres } = openCache();
  const { promise, resolve } = Promise.withResolvers<Caller>();
  postgres.answer = () => promise;
  const found = cache.find("used");
  cache.clear();
  resolve(caller);
  expect(await found).toBe(caller);
  await cache.find("used");
  expect(asked).toHaveLength(2);
});

test("a token that is not used for 10 s is not looked up any more", async () => {
  const { cache, asked, pass } = openCache();
  await cache.find("used");
  pass(10_001);
  await cache.renew();
  expect(asked).toHaveLength(1);
});

test("a renewal that finds a token revoked ends it at once", async () => {
  const { cache, postgres, pass } = openCache();
  await cache.find("used");
  postgres.answer = () => Promise.resolve(undefined);
  pass(1_000);
  await cache.renew();
  expect(await cache.find("used")).toBeUndefined();
});

test("a renewal that fails leaves the token to its next request", async () => {
  const { cache, postgres, pass } = openCache();
  await cache.find("used");
  postgres.answer = () => Promise.reject(new Error("unreachable"));
  pass(1_000);
  await cache.renew();
  pass(1_000);
  await expect(cache.find("used")).rejects.toThrow("unreachable");
});

test("a made-up token is not renewed, and of more than 500 tokens those that were used last are", async () => {
  const { cache, asked, postgres } = openCache();
  for (let nth = 0; nth < 600; nth += 1) await cache.find(`token ${nth}`);
  postgres.answer = () => Promise.resolve(undefined);
  await cache.find("made up");
  asked.length = 0;
  await cache.renew();
  expect(asked).toHaveLength(500);
  expect(asked).not.toContain("made up");
  expect(asked).toContain("token 599");
  expect(asked).not.toContain("token 99");
});
