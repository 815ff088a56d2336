import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { keysOf } from "../../../../shared/credits/holds.ts";
import type { Books } from "./books.ts";
import { type Cast, keyHashes } from "./cast.ts";
import { type Gate, heldMilsOf } from "./gate.ts";
import { lawOfBodies, lawsOfBooks, lawsOfGate } from "./laws.ts";
import { gateOf, type Money, type Real } from "./money.ts";

// A failure is told for 5 s and then forgotten; before that it must be there.
const failureToldAtLeastMs = 4_000;

const seenBooks = z.object({
  accounts: z.array(
    z.object({
      id: z.string(),
      balanceMils: z.number(),
      version: z.number(),
      entries: z.array(
        z.object({
          version: z.number(),
          kind: z.enum(["grant", "charge", "refund", "reversal"]),
          mils: z.number(),
          balanceMils: z.number(),
          subject: z.string(),
          reason: z.string().nullable(),
        }),
      ),
    }),
  ),
  undelivered: z.array(z.string()),
  paid: z.array(z.tuple([z.string(), z.string()])),
});
export type SeenBooks = z.infer<typeof seenBooks>;

const text = `
  select json_build_object(
    'accounts', (select json_agg(json_build_object('id', o.id, 'balanceMils', o.balance_mils, 'version', o.version,
        'entries', (select coalesce(json_agg(json_build_object('version', l.version, 'kind', l.kind, 'mils', l.amount_mils,
            'balanceMils', l.balance_after_mils, 'subject', coalesce(l.request_id, l.grant_id), 'reason', l.reason)
            order by l.version), '[]') from ledger_entries l where l.organization_id = o.id)) order by o.id)
      from organizations o where o.id = any ($1)),
    'undelivered', (select coalesce(json_agg(u.request_id order by u.request_id), '[]')
      from undelivered u where u.request_id = any ($2)),
    'paid', (select coalesce(json_agg(json_build_array(p.organization_id || ' ' || p.key_hash, p.fingerprint)
        order by p.organization_id, p.key_hash), '[]')
      from paid_keys p where p.organization_id = any ($1))) as seen`;

/** What Postgres holds of the run's organizations. */
export async function readBooks({ cast }: Money, { database }: Real): Promise<SeenBooks> {
  const values = [cast.organizations.map(({ id }) => id), cast.searches.map(({ requestId }) => requestId)];
  const { rows } = await database.query({ name: "model_books", text, values });
  return seenBooks.parse(rows[0]?.seen);
}

/** What the model believes that Postgres holds, in the same words. */
export function toldBooks(cast: Cast, books: Books): SeenBooks {
  return {
    accounts: cast.organizations
      .map(({ id }) => id)
      .toSorted()
      .map((id) => ({ id, ...(books.accounts.get(id) ?? { balanceMils: 0, version: 0, entries: [] }) })),
    undelivered: [...books.undelivered].toSorted(),
    paid: [...books.paid].toSorted(([one], [other]) => (one < other ? -1 : 1)),
  };
}

/** What Redis holds of one organization. Without deadlines: they are times of its own clock. */
export interface SeenGate {
  balance: { balance?: string; version?: string };
  heldMils: number;
  holds: Record<string, { mils: number; keyHash: string }>;
  used: number;
  records: Record<string, Record<string, string>>;
}

async function readGate({ redis }: Real, organizationId: string): Promise<SeenGate> {
  const keys = keysOf(organizationId);
  const [balance, { held, ...holds }, used, ...records] = await Promise.all([
    redis.hgetall(keys.balance),
    redis.hgetall(keys.holds),
    redis.get(keys.window),
    ...keyHashes.map((hash) => redis.hgetall(keys.record(hash))),
  ]);
  const readHold = (hold: string) => {
    const [, mils, keyHash] = /^(\d+):\d+:(.*)$/.exec(hold) ?? [];
    return { mils: Number(mils), keyHash: keyHash ?? hold };
  };
  return {
    balance,
    heldMils: Number(held ?? 0),
    holds: Object.fromEntries(Object.entries(holds).map(([id, hold]) => [id, readHold(hold)])),
    used: Number(used ?? 0),
    records: Object.fromEntries(keyHashes.map((hash, at) => [hash, records[at] ?? {}])),
  };
}

function toldGate(gate: Gate, seen: SeenGate): SeenGate {
  const { balance, holds, used } = gate;
  const records = keyHashes.map((hash): [string, Record<string, string>] => {
    const { requestId: request, fingerprint, body, failure } = gate.records.get(hash) ?? {};
    const isOver = failure !== undefined && performance.now() - failure.toldAtMs > failureToldAtLeastMs;
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

/** Reads everything that is real, holds it against what the model believes, and against what must be true anyway. */
export async function watch(money: Money, real: Real): Promise<void> {
  const ids = money.cast.organizations.map(({ id }) => id);
  const [books, ...gates] = await Promise.all([
    real.books ?? readBooks(money, real),
    ...ids.map((id) => readGate(real, id)),
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
    deepStrictEqual(seen, toldGate(gateOf(money, id), seen));
  }
  deepStrictEqual(books, toldBooks(money.cast, money.books));
}
