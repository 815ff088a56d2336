import type { Accounts } from "./accounts.ts";

/** The price of a search in audited runs, and of a page if the plan has a price by page. */
export const priceMils = 5;

/** An organization whose books are audited, and all that was ever granted to it, corrections included. */
export interface AuditedCustomer {
  organizationId: string;
  token: string;
  grantedMils: number;
}

/** One request for a search, and all that its caller knows about its outcome. */
export interface Attempt {
  organizationId: string;
  tokenId: string;
  keyword: string;
  key: string | undefined;
  /** What an answer costs by the plan of the organization. */
  priceMils: number;
  /** Which API was asked. */
  api: 0 | 1;
  /** By `performance.now()`. */
  sentAtMs: number;
  endedAtMs: number;
  /** Absent where there was no whole answer. */
  answer?: { status: number; requestId: string; text: string; replayed: boolean };
  /** Why there was none: the caller disconnected, the connection broke, or nothing arrived in the caller's own timeout. */
  noAnswer?: "disconnected" | "broken" | "silent";
}

export interface AuditedApi {
  /** When it was killed, by `performance.now()`. */
  killedAtMs: readonly number[];
  /** When callers could not count on an answer, by `performance.now()`. */
  unreachable: readonly { fromMs: number; toMs: number }[];
  /** What its log says: the status of each request that it answered. */
  statuses: ReadonlyMap<string, number>;
}

export interface ProviderCall {
  keyword: string;
  /** When the provider returned results, by the clock of this machine; infinite where it never did. */
  answeredAtMs: number;
}

/** All that is known about a run from outside, once it is at rest. */
export interface Evidence {
  accounts: Accounts;
  attempts: readonly Attempt[];
  apis: readonly [AuditedApi, AuditedApi];
  providerCalls: readonly ProviderCall[];
  /** How long after it was sent an attempt may end, in milliseconds. */
  answerMsMax: number;
}

/** The status of each request in the log of an API. */
export function statusesIn(lines: readonly Record<string, unknown>[]): Map<string, number> {
  const requests = lines.filter((line) => line["msg"] === "request");
  return new Map(requests.map((line) => [String(line["requestId"]), Number(line["status"])]));
}

export const durationMs = ({ sentAtMs, endedAtMs }: Attempt) => endedAtMs - sentAtMs;

/** Whether the API that was asked could not be expected to answer in time. */
export const wasUnreachable = ({ apis }: Evidence, { api, sentAtMs, endedAtMs }: Attempt): boolean =>
  apis[api].unreachable.some(({ fromMs, toMs }) => fromMs < endedAtMs && toMs > sentAtMs);
