import { z } from "zod";
import { readOwnLimits } from "../../../api/organizations/limits.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { type Attempt, priceMils } from "../audit/evidence.ts";
import { limitThatRefused } from "../audit/spending-evidence.ts";
import { type Callers, keywordOf } from "./callers.ts";
import type { Cluster, Customer } from "./cluster.ts";
import type { LimitOwner } from "./limits.ts";

const roomForSearches = 2;
const searchesAtOnce = 4;
const shownMsMax = 15_000;
const timesMax = 5;
const isUnavailable = /^(50[34]|[^\d]+$)/;
const firstKeyword = 2_000_000; // No planned search has it or a later one.

const usageLimits = z.object({ limits: z.array(z.record(z.string(), z.unknown())) });

/**
 * Checks the limits of each limited organization and of its first token at rest. Nothing is held. A limit with room for two
 * searches admits two of four at once; a limit equal to what was spent, or of 0, admits none.
 * @returns a sentence per broken promise.
 */
export async function searchAtLimits(cluster: Cluster, callers: Callers): Promise<string[]> {
  const capped = cluster.customers.filter(({ kind }) => kind === "capped");
  const found = await Promise.all(capped.map((customer, nth) => searchAtLimitsOf(cluster, callers, customer, nth)));
  return found.flat();
}

async function searchAtLimitsOf(
  cluster: Cluster,
  callers: Callers,
  customer: Customer,
  nth: number,
): Promise<string[]> {
  const { organizationId } = customer;
  const [token] = customer.tokens;
  let searches = firstKeyword + 100 * nth;
  const search = (): Promise<Attempt> => {
    searches += 1;
    const api = searches % 2 === 0 ? 0 : 1;
    return callers.send({ customer, token, keyword: keywordOf(searches), key: undefined, fields: {}, api });
  };
  const owners: LimitOwner[] = [
    { kind: "organization", organizationId, id: organizationId },
    { kind: "token", organizationId, id: token.tokenId },
  ];
  for (const owner of owners) await cluster.limits.change(owner, { dayMils: null, monthMils: null });
  const broken: string[] = [];
  for (const owner of owners) {
    const spentMils = async () =>
      (await readOwnLimits(cluster.service.database, owner.kind, owner.id))?.spentTodayMils ?? 0;
    const outcomesAt = async (dayMils: number, count: number) => {
      await cluster.limits.change(owner, { dayMils });
      const isShown = await showsLimit(cluster, token.token, { scope: owner.kind, limitMils: dayMils, heldMils: 0 });
      if (!isShown) return ["usage does not show it without mils held"];
      return (await Promise.all(Array.from({ length: count }, search))).map(outcomeOf).toSorted();
    };
    const reason = owner.kind === "token" ? "token" : "organization";
    const exact = [
      ...Array(roomForSearches).fill("200"),
      ...Array(searchesAtOnce - roomForSearches).fill(`402 ${reason}`),
    ];
    const steps = [
      { limitOf: (spent: number) => spent + roomForSearches * priceMils, count: searchesAtOnce, expected: exact },
      { limitOf: (spent: number) => spent, count: 1, expected: [`402 ${reason}`] },
      { limitOf: () => 0, count: 1, expected: [`402 ${reason}`] },
    ];
    for (const { limitOf, count, expected } of steps) {
      let found = "";
      // On a busy machine a search may time out. Its hold then takes room from the others, so the step is made anew.
      for (let times = 1; times <= timesMax; times += 1) {
        const spent = await spentMils();
        const outcomes = await outcomesAt(limitOf(spent), count);
        found = `${owner.id} with ${spent} mils spent and a limit of ${limitOf(spent)}: ${outcomes.join(", ")}`;
        if (outcomes.every((outcome) => !isUnavailable.test(outcome))) {
          if (outcomes.join() === expected.join()) found = "";
          break;
        }
      }
      if (found) broken.push(`${found}, expected ${expected.join(", ")}`);
    }
    // The organization's limit would refuse before the token's.
    if (owner.kind === "organization") await cluster.limits.change(owner, { dayMils: null });
  }
  return broken;
}

/** Waits until the usage answers of both APIs show the limit. @returns whether they do. */
function showsLimit(cluster: Cluster, token: string, limit: object): Promise<boolean> {
  return becomes(async () => {
    const shown = await Promise.all(
      ([0, 1] as const).map(async (api) => {
        const response = await fetch(cluster.addressOf(api, "/v1/usage"), {
          headers: { authorization: `Bearer ${token}` },
        });
        const { limits } = usageLimits.parse(await response.json());
        return limits.some((one) => Object.entries(limit).every(([name, value]) => one[name] === value));
      }),
    );
    return shown.every(Boolean);
  }, shownMsMax);
}

const outcomeOf = (attempt: Attempt): string => {
  const limit = limitThatRefused(attempt);
  const detail = limit ? (limit.isOfToken ? " token" : " organization") : "";
  return `${attempt.answer?.status ?? attempt.noAnswer}${detail}`;
};
