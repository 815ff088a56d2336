import type { Callers } from "./callers.ts";
import { indexOf, keywordOf } from "./callers.ts";
import type { Cluster, Customer } from "./cluster.ts";

/** What callers may expect once all faults are over. Each function returns a sentence for every broken promise. */

const searchesOnceMended = 50;

/** What was paid under a key is there for the caller who asks again. */
export async function fetchPaidKeys(
  callers: Callers,
  customers: readonly Customer[],
  searches: number,
): Promise<string[]> {
  const keyed = callers.attempts.filter(({ key }) => key !== undefined);
  const unanswered = [...Map.groupBy(keyed, ({ key }) => key).values()].filter((same) =>
    same.every(({ answer }) => answer?.status !== 200),
  );
  const found = await Promise.all(
    unanswered.map(async ([first]) => {
      const customer = customers.find(({ organizationId }) => organizationId === first?.organizationId);
      if (!first || !customer || indexOf(first.keyword) >= searches) return [];
      const { answer, keyword, noAnswer } = await callers.searchWithRetries({ ...first, customer });
      const isAnswer = answer?.status === 200 || (answer?.status === 402 && customer.kind !== "rich");
      return isAnswer || answer?.status === 429 ? [] : [`"${keyword}" asked once more: ${answer?.text ?? noAnswer}`];
    }),
  );
  return found.flat();
}

/** Searches are answered again, and quickly. */
export async function searchOnceMended(cluster: Cluster, callers: Callers, msMax: number): Promise<string[]> {
  const rich = cluster.customers.filter(({ kind }) => kind === "rich");
  const found = await Promise.all(
    Array.from({ length: searchesOnceMended }, async (_, n) => {
      const customer = rich[n % rich.length];
      if (!customer) return [];
      const request = { customer, keyword: keywordOf(1_000_000 + n), key: undefined };
      const attempt = await callers.send({ ...request, api: n % 2 === 0 ? 0 : 1 });
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
