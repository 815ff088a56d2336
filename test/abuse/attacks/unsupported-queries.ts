import { callEach, outcomeOf } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

const atOnce = 16;
const windowLimit = 600;
const searches: Record<Strength, number> = { quick: 500, full: 10_000 };

/** Searches that always fail and cost nothing: no provider of the worker supports mobile devices. */
export const unsupportedQueries: Attack = {
  name: "unsupported-queries",
  tried: `searches that no provider supports, half of them under new keys, ${atOnce} at once`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    // The window outlasts the attack, so that its key stays in Redis.
    const attacker = await service.organization({ terms: { windowSeconds: 1_000_000, windowLimit } });
    await service.usage(attacker.token); // It stores what the first use of a token stores.
    const keysOf = async () => (await service.redis.keys(`*${attacker.organizationId}*`)).length;
    const [rowsBefore, keysBefore] = [await rowsIn(stack), await keysOf()];
    const outcomes = await failAll(stack, attacker, searches[strength]);
    await service.rest();
    const [rows, keys] = [(await rowsIn(stack)) - rowsBefore, (await keysOf()) - keysBefore];
    return [
      {
        promised: "each is refused by the API: 400 unsupported, then 429 refused beyond ten rate windows",
        seen: `${tally(outcomes)}; ${provider.requests.length} provider calls`,
        held:
          provider.requests.length === 0 &&
          outcomes.every((outcome) => /^(400 unsupported|429 refused)$/.test(outcome)),
      },
      {
        promised: "they leave no row in Postgres and no key in Redis",
        seen: `${((rows / outcomes.length) * 1_000).toFixed(0)} rows per 1,000 searches; ${keys} keys`,
        held: rows === 0 && keys === 0,
      },
    ];
  },
};

const failAll = ({ callers, apiUrl }: AttackStack, { token }: Organization, count: number): Promise<string[]> =>
  callEach(count, atOnce, async (n) => {
    const key = n % 2 === 0 ? `unsupported-${n}` : undefined;
    return outcomeOf(await callers.search(apiUrl, token, { keyword: `failed ${n}`, device: "mobile" }, key));
  });

/** The number of rows in all tables. */
async function rowsIn({ service }: AttackStack): Promise<number> {
  return asOwner(service.databaseUrl, async (owner) => {
    const tables = await owner.query(
      "select oid::regclass as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
    );
    const counts = tables.rows.map(({ name }) => `(select count(*) from ${name})`);
    const { rows } = await owner.query(`select ${counts.join(" + ")} as rows`);
    return Number(rows[0].rows);
  });
}
