import { deepStrictEqual } from "node:assert/strict";
import type { Books } from "./books.ts";
import { type Cast, keyHashes } from "./cast.ts";
import { type Gate, heldMilsOf } from "./gate.ts";
import { lawOfBodies, lawsOfBooks, lawsOfGate } from "./laws.ts";
import { gateOf, type Money, type Real } from "./money.ts";
import { readBooks, readGate, type SeenBooks, type SeenGate } from "./seen.ts";

// Redis keeps a failure for 5 s. Until shortly before that it must be there.
const failureKeptMinMs = 4_000;

/** What the model expects in Postgres, in the same form. */
export function expectedBooks(cast: Cast, books: Books): SeenBooks {
  return {
    accounts: cast.organizations
      .map(({ id }) => id)
      .toSorted()
      .map((id) => ({ id, ...(books.accounts.get(id) ?? { balanceMils: 0, version: 0, entries: [] }) })),
    undelivered: [...books.undelivered].toSorted(),
    paid: [...books.paid].toSorted(([one], [other]) => (one < other ? -1 : 1)),
  };
}

function expectedGate(gate: Gate, seen: SeenGate): SeenGate {
  const { balance, holds, used } = gate;
  const records = keyHashes.map((hash): [string, Record<string, string>] => {
    const { requestId: request, fingerprint, body, failure } = gate.records.get(hash) ?? {};
    const isOver = failure !== undefined && performance.now() - failure.toldAtMs > failureKeptMinMs;
    if (request === undefined || fingerprint === undefined) return [hash, {}];
    if (isOver && Object.keys(seen.records[hash] ?? {}).length === 0) return [hash, {}];
    const end = failure ? { failure: failure.text } : body === undefined ? {} : { body };
    return [hash, { request, fingerprint, ...end }];
  });
  return {
    balance: balance ? { balance: String(balance.balanceMils), version: String(balance.version) } : {},
    heldMils: heldMilsOf(gate),
    holds: Object.fromEntries([...holds].map(([id, { mils, keyHash }]) => [id, { mils, keyHash }])),
    used,
    records: Object.fromEntries(records),
  };
}

/** Reads Postgres and Redis, and compares them with the model and with the invariants. */
export async function watch(money: Money, real: Real): Promise<void> {
  const ids = money.cast.organizations.map(({ id }) => id);
  const [books, ...gates] = await Promise.all([
    real.books ?? readBooks(money.cast, real.database),
    ...ids.map((id) => readGate(real.redis, id)),
  ]);
  real.books = books;
  lawsOfBooks(money, books);
  for (const [at, id] of ids.entries()) {
    const seen = gates[at];
    const account = books.accounts.find((one) => one.id === id);
    if (!seen || !account) throw new Error(`${id} is gone`);
    lawsOfGate(money, account, seen);
    lawOfBodies(real.seen.get(id), seen);
    real.seen.set(id, seen);
    deepStrictEqual(seen, expectedGate(gateOf(money, id), seen));
  }
  deepStrictEqual(books, expectedBooks(money.cast, money.books));
}
