import { expect } from "vitest";
import { z } from "zod";
import { keysOf } from "../../shared/credits/holds.ts";
import { toldErrors } from "../../shared/error-bodies.ts";
import { type ErrorCode, errors } from "../../shared/errors.ts";
import { requestId as requestIdShape } from "../../shared/ids.ts";
import { queueName, queuePrefix } from "../../shared/queue.ts";
import type { Answer, Organization, Service } from "./service.ts";

/** Terms under which no window ends during a test, so that a token that was taken stays visible. */
export const endlessWindow = { windowSeconds: 1_000_000 };

/** An error as a test names it: `status` stands in it only where it is not the code's own, but Node's. */
export interface Refusal {
  code: ErrorCode;
  status?: number | undefined;
  details?: unknown;
}

const anyErrorBody = z.strictObject({
  requestId: requestIdShape,
  error: z.union(Object.values(toldErrors)),
});

/** The error in an answer, once it has the one shape of all errors and the headers of all answers. */
export function refusalIn(answer: Answer | undefined): Refusal {
  if (!answer) throw new Error("there was no answer");
  const { requestId, error } = anyErrorBody.parse(answer.body);
  const { code } = error;
  expect(error.message).toBe(errors[code].says);
  expect(answer.headers.get("x-request-id")).toBe(requestId);
  expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expectCommonHeaders(answer);
  return { code, details: error.details, ...(answer.status !== errors[code].status && { status: answer.status }) };
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
