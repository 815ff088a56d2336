import type { Accounts } from "./accounts.ts";

/** The price of a search in audited runs, or of a page if the plan has a price per page. */
export const priceMils = 5;

/** An organization to audit, with the sum of its grants and corrections. */
export interface AuditedCustomer {
  organizationId: string;
  token: string;
  grantedMils: number;
}

/** One request for a search, with all that its caller knows about the outcome. */
export interface Attempt {
  organizationId: string;
  tokenId: string;
  keyword: string;
  key: string | undefined;
  /** The price of an answer by the organization's plan. */
  priceMils: number;
  /** Which API was asked. */
  api: 0 | 1;
  /** By `performance.now()`. */
  sentAtMs: number;
  endedAtMs: number;
  /** Absent if no whole answer arrived. */
  answer?: { status: number; requestId: string; text: string; replayed: boolean };
  /** Why there was none: the caller disconnected, the connection broke, or the caller's own timeout passed. */
  noAnswer?: "disconnected" | "broken" | "silent";
}

export interface AuditedApi {
  /** When it was killed, by `performance.now()`. */
  killedAtMs: readonly number[];
  /** When a fault kept it from answering, by `performance.now()`. */
  unreachable: readonly { fromMs: number; toMs: number }[];
  /** The status of each request that it answered, from its log. */
  statuses: ReadonlyMap<string, number>;
}

export interface ProviderCall {
  keyword: string;
  /** When the provider returned results, by the clock of this machine; infinite if it did not. */
  answeredAtMs: number;
}

/** All that is known from outside about a run that is at rest. */
export interface Evidence {
  accounts: Accounts;
  attempts: readonly Attempt[];
  apis: readonly [AuditedApi, AuditedApi];
  providerCalls: readonly ProviderCall[];
  /** How long an attempt may take, in milliseconds. */
  answerMsMax: number;
}

/** The evidence of a supervised API process. @param api.unreachable when a fault kept it from answering. */
export const auditedApi = ({
  killedAtMs,
  unreachable = [],
  runs,
}: {
  killedAtMs: readonly number[];
  unreachable?: AuditedApi["unreachable"];
  runs: readonly { lines: readonly Record<string, unknown>[] }[];
}): AuditedApi => ({ killedAtMs, unreachable, statuses: statusesIn(runs.flatMap(({ lines }) => lines)) });

/** The status of each request in the log of an API. */
export function statusesIn(lines: readonly Record<string, unknown>[]): Map<string, number> {
  const requests = lines.filter((line) => line["msg"] === "request");
  return new Map(requests.map((line) => [String(line["requestId"]), Number(line["status"])]));
}

export const durationMs = ({ sentAtMs, endedAtMs }: Attempt) => endedAtMs - sentAtMs;

/** Whether a fault may have kept the API from answering in time. */
export const wasUnreachable = ({ apis }: Evidence, { api, sentAtMs, endedAtMs }: Attempt): boolean =>
  apis[api].unreachable.some(({ fromMs, toMs }) => fromMs < endedAtMs && toMs > sentAtMs);
