import { z } from "zod";
import { type Query, querySchema } from "../query/query.ts";
import { answerSources } from "../outcomes.ts";
import type { SearchTrace } from "../queue/replies.ts";

/** What a process knows of a search that it ended. */
export interface SearchRecord {
  requestId: string;
  organizationId: string;
  tokenId: string;
  /** SHA-256 of the Idempotency-Key in hexadecimal; undefined without one. */
  keyHash: string | undefined;
  query: Query;
  /** In a worker from the enqueueing to the answer of the engine, in the API from the arrival of the request. */
  durationMs: number;
  /** Undefined in the API, which does not know what a worker did. */
  trace: Pick<SearchTrace, "from" | "provider" | "calls"> | undefined;
}

const call = z.object({ provider: z.string(), outcome: z.string(), ms: z.number(), costMicroUsd: z.number() });

const loggedRow = z.object({
  at: z.date(),
  request_id: z.string(),
  token_id: z.string(),
  token_name: z.string().nullable(),
  token_last4: z.string().nullable(),
  key_hash: z.string().nullable(),
  ...querySchema.pick({ keyword: true, location: true, language: true, device: true, depth: true }).shape,
  target_domain: z.string().nullable(),
  types: z.array(z.string()).nullable(),
  format: z.string().nullable(),
  duration_ms: z.number(),
  source: z.enum(answerSources).nullable(),
  provider: z.string().nullable(),
  calls: z.array(call).nullable(),
});

/** A row of the search log. */
export interface LoggedSearch {
  /** When its request arrived. */
  at: Date;
  requestId: string;
  /** The name is null without one, and both texts once the organization is erased. */
  token: { tokenId: string; name: string | null; last4: string | null };
  keyHash: string | null;
  query: Pick<Query, "keyword" | "location" | "language" | "device" | "depth"> & {
    targetDomain?: string;
    types?: string[];
    format?: string;
  };
  durationMs: number;
  /** What the worker did; null if no worker had it. `calls` are for operators: they have what each one cost us. */
  work: { source: string; provider: string; calls: z.infer<typeof call>[] } | null;
}

/** What {@link readLogged} reads, for rows `l` of the search log with their tokens `t`. */
export const loggedColumns = `l.at, l.request_id, l.token_id, t.name as token_name, t.last4 as token_last4, l.key_hash, l.keyword,
  l.location, l.language, l.device, l.depth, l.target_domain, l.types, l.format, l.duration_ms, l.source, l.provider, l.calls`;

export function readLogged(read: unknown): LoggedSearch {
  const row = loggedRow.parse(read);
  const { keyword, location, language, device, depth, target_domain: targetDomain, types, format } = row;
  const { token_id: tokenId, token_name: name, token_last4: last4, source, provider, calls } = row;
  return {
    at: row.at,
    requestId: row.request_id,
    token: { tokenId, name, last4 },
    keyHash: row.key_hash,
    query: {
      keyword,
      location,
      language,
      device,
      depth,
      ...(targetDomain !== null && { targetDomain }),
      ...(types !== null && { types }),
      ...(format !== null && { format }),
    },
    durationMs: row.duration_ms,
    work: source === null ? null : { source, provider: provider ?? "", calls: calls ?? [] },
  };
}
