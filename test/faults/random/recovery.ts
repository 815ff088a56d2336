import { setTimeout as sleep } from "node:timers/promises";
import type { Callers } from "./callers.ts";
import { indexOf, keywordOf } from "./callers.ts";
import type { Cluster, Customer } from "./cluster.ts";
import type { PlannedSearch } from "./plan.ts";
import type { Attempt } from "../audit/evidence.ts";

/** What callers may expect once all faults are over. Each function returns a sentence per broken promise. */

const searchesOnceMended = 50;
const waitsMax = 10;
const repeatsMax = 60;

/** An answer that was paid under a key can be fetched. */
export async function fetchPaidKeys(
  callers: Callers,
  { customers }: Cluster,
  planned: readonly PlannedSearch[],
): Promise<string[]> {
  const unanswered = [...byKey(callers).values()].filter((same) => same.every(({ answer }) => answer?.status !== 200));
  const found = await Promise.all(
    unanswered.map(async ([first]) => {
      const sender = first && senderOf(customers, first);
      const fields = planned[indexOf(first?.keyword ?? "")]?.fields;
      if (!first || !sender?.token.scopes.includes("search") || !fields) return [];
      const { customer } = sender;
      const { answer, keyword, noAnswer } = await callers.searchWithRetries({ ...first, ...sender, fields });
      const isAnswer = answer?.status === 200 || (answer?.status === 402 && !isRich(customer));
      return isAnswer || answer?.status === 429 ? [] : [`"${keyword}" asked once more: ${answer?.text ?? noAnswer}`];
    }),
  );
  return found.flat();
}

/** After Redis has lost its data, answers under keys are returned again, even at a limit, and the provider is not called. */
export async function repeatKeysOnceFlushed(
  callers: Callers,
  { service, customers, provider }: Cluster,
  planned: readonly PlannedSearch[],
): Promise<string[]> {
  const answered = [...byKey(callers).values()].flatMap(
    (same) => same.find(({ answer }) => answer?.status === 200) ?? [],
  );
  await service.redis.flushall();
  const callsBefore = provider.calls.length;
  const found = await Promise.all(
    answered.slice(-repeatsMax).map(async (first) => {
      const sender = senderOf(customers, first);
      const fields = planned[indexOf(first.keyword)]?.fields;
      if (!sender || !fields || sender.customer.kind === "limited") return [];
      const { answer, keyword, noAnswer } = await callers.searchWithRetries({ ...first, ...sender, fields });
      return answer?.status === 200 ? [] : [`"${keyword}" repeated after a flush: ${answer?.text ?? noAnswer}`];
    }),
  );
  const calls = provider.calls.length - callsBefore;
  return calls === 0 ? found.flat() : [...found.flat(), `repeats after a flush cost ${calls} calls of the provider`];
}

const isRich = ({ kind }: Customer) => kind === "rich" || kind === "paged";

/** Who sent an attempt, and with which token. */
function senderOf(customers: readonly Customer[], { tokenId }: Attempt) {
  const senders = customers.flatMap((customer) => customer.tokens.map((token) => ({ customer, token })));
  return senders.find(({ token }) => token.tokenId === tokenId);
}

const byKey = ({ attempts }: Callers): Map<string, Attempt[]> =>
  Map.groupBy(
    attempts.filter(({ key }) => key !== undefined),
    ({ key = "" }) => key,
  );

/** Searches are answered again, each in time. */
export async function searchOnceMended(cluster: Cluster, callers: Callers, msMax: number): Promise<string[]> {
  const rich = cluster.customers.filter(isRich);
  const found = await Promise.all(
    Array.from({ length: searchesOnceMended }, async (_, n) => {
      const customer = rich[n % rich.length];
      if (!customer) return [];
      const request = {
        customer,
        token: customer.tokens[0],
        keyword: keywordOf(1_000_000 + n),
        key: undefined,
        fields: {},
      };
      const send = () => callers.send({ ...request, api: n % 2 === 0 ? 0 : 1 });
      let attempt = await send();
      // On a slow machine the queue may not be empty yet, or a command to Redis times out; the API says when to retry.
      for (let waits = 1; waits <= waitsMax; waits += 1) {
        const wait = /"code":"unavailable".*"retryAfterMs":(\d+)/.exec(attempt.answer?.text ?? "");
        if (!wait) break;
        await sleep(Number(wait[1]));
        attempt = await send();
      }
      const { answer, noAnswer, sentAtMs, endedAtMs } = attempt;
      const ms = Math.round(endedAtMs - sentAtMs);
      if (answer?.status !== 200) return [`a search once all was mended: ${answer?.text ?? noAnswer}`];
      return ms > msMax ? [`a search once all was mended took ${ms} ms`] : [];
    }),
  );
  const isAtRest = await cluster.service.rest().then(
    () => true,
    () => false,
  );
  return isAtRest ? found.flat() : [...found.flat(), "the searches once all was mended did not come to rest"];
}
