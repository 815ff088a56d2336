import { z } from "zod";
import { querySchema } from "../query/query.ts";

const milsByPeriod = z.object({ dayMils: z.number().optional(), monthMils: z.number().optional() });
/** Mils; absent without that limit. */
export type Limits = z.infer<typeof milsByPeriod>;

/** The limits that a search must keep; each absent if its owner set none. */
const payerLimits = z.object({
  organization: milsByPeriod.optional(),
  token: milsByPeriod.extend({ tokenId: z.string() }).optional(),
});
export type PayerLimits = z.infer<typeof payerLimits>;

const idempotencyKey = z.object({ hash: z.string(), fingerprint: z.string() });
/** An Idempotency-Key as it is stored: SHA-256 of the key, and of the query it was sent with. */
export type IdempotencyKey = z.infer<typeof idempotencyKey>;

/** What the API sends to the worker: the request, never the answer, and no secret. */
export const searchJob = z.object({
  requestId: z.string(),
  organizationId: z.string(),
  query: querySchema,
  /**
   * The fingerprint of what the engine searches: a worker acquires its lease with the job. Absent if a kept answer may answer the
   * search, which then needs no lease.
   */
  flight: z.string().optional(),
  tokenId: z.string(),
  /** The limits that the search was admitted under, and may be charged under. */
  limits: payerLimits,
  /** The price that is held, in mils. */
  priceMils: z.number(),
  /** What it costs if a kept answer answers it, by the plan that admitted it; absent if its organization keeps none. */
  cachedPriceMils: z.number().optional(),
  /** What could still be spent once the search was admitted, in mils. */
  remainingMils: z.number(),
  /** The open searches of the organization with this one, when it was admitted. */
  openSearches: z.number(),
  /** By Redis' clock. After it no provider is called. */
  deadlineAtMs: z.number(),
  /** By Redis' clock. */
  enqueuedAtMs: z.number(),
  /** The whole time that the caller was given, for the error that names it. */
  timeoutMs: z.number(),
  /** The reply inbox of the API process that waits. */
  inbox: z.string(),
  /** The budget of unpaid provider calls of its organization. */
  unpaidCallsPerHour: z.number(),
  /** Whether most of its time had passed when it was admitted, because it waited for the first request under its key. */
  hadLittleTime: z.boolean(),
  key: idempotencyKey.optional(),
  /** The HTTP request as W3C Trace Context writes it; absent unless the search is traced. */
  traceparent: z.string().optional(),
});
export type SearchJob = z.infer<typeof searchJob>;
