import { expect } from "vitest";
import { keysOf } from "../../shared/credits/holds.ts";
import { type ErrorCode, errors } from "../../shared/errors.ts";
import { queueName, queuePrefix } from "../../shared/queue.ts";
import type { Answer, Organization, Service } from "./service.ts";

/** Terms under which no window ends during a test, so that a token that was taken stays visible. */
export const endlessWindow = { windowSeconds: 1_000_000 };

/** What must be true of an error. Without `status` it is the code's own, without `details` any object will do. */
export interface Refusal {
  code: ErrorCode;
  status?: number | undefined;
  details?: unknown;
}

/** Every error has one shape, and the headers that belong to every answer. */
export function expectRefusal(answer: Answer | undefined, refusal: Refusal): Answer {
  if (!answer) throw new Error("there was no answer");
  const { code, status = errors[code].status, details = expect.any(Object) } = refusal;
  expect(answer).toMatchObject({ status, body: { error: { code } } });
  expect(answer.body).toEqual({
    requestId: expect.stringMatching(/^req_[0-7][0-9a-z]{25}$/),
    error: { code, message: errors[code].says, details },
  });
  expect(answer.headers.get("x-request-id")).toBe(answer.body.requestId);
  expectCommonHeaders(answer);
  return answer;
}

export function expectCommonHeaders({ headers }: Pick<Answer, "headers">): void {
  expect(headers.get("x-request-id")).toMatch(/^req_/);
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-powered-by")).toBeNull();
  expect(headers.get("etag")).toBeNull();
}

/** Where an organization stands with us: all that a request could move. */
export async function standingOf(service: Service, { organizationId }: Organization) {
  const [ledger, holds, rateTokensTaken, keys] = await Promise.all([
    service.ledgerOf(organizationId),
    service.redis.hgetall(keysOf(organizationId).holds),
    service.redis.get(keysOf(organizationId).window),
    service.redis.keys(keysOf(organizationId).record("*")),
  ]);
  return { ledger, holds, rateTokensTaken, keys: keys.toSorted() };
}

const queueEvents = `${queuePrefix}:${queueName}:events`;

/** The searches that were ever put into the queue, by the queue's own account of it, as far as that goes back. */
export async function enqueuedSearches(service: Service): Promise<string[]> {
  const events = await service.redis.xrange(queueEvents, "-", "+");
  return events
    .map(([, fields]) => new Map(fields.flatMap((name, at) => (at % 2 ? [] : [[name, fields[at + 1] ?? ""] as const]))))
    .filter((event) => event.get("event") === "added")
    .map((event) => event.get("jobId") ?? "");
}

/** Asks what must leave no trace: no mil, no hold, no rate token, no remembered key, no job. */
export async function leavingNoTrace<Given extends Answer | undefined>(
  service: Service,
  organization: Organization,
  ask: () => Promise<Given>,
): Promise<Given> {
  const before = await Promise.all([standingOf(service, organization), enqueuedSearches(service)]);
  const answer = await ask();
  expect(await Promise.all([standingOf(service, organization), enqueuedSearches(service)])).toEqual(before);
  return answer;
}
