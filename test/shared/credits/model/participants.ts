import type { IdempotencyKey } from "../../../../shared/queue/search-job.ts";
import { grantCredit } from "../../../../shared/credits/ledger.ts";
import type { Plan } from "../../../../shared/credits/plans.ts";
import type { Database } from "../../../../shared/database/pool.ts";
import { newId } from "../../../../shared/ids.ts";
import { createOrganization } from "../../../../shared/organizations/organizations.ts";
import { changeLimits } from "../../../../api/organizations/limits.ts";
import { issueToken } from "../../../../api/tokens/tokens.ts";

/** A search that commands can choose, with everything about it that never changes. */
export interface Search {
  requestId: string;
  organizationId: string;
  tokenId: string;
  plan: Plan;
  priceMils: number;
  key: IdempotencyKey | undefined;
}

/** One of the two organizations of a run. Its searches come from its two tokens in turn. */
export interface ModelOrganization {
  id: string;
  plan: Plan;
  tokenIds: string[];
  firstGrant: { grantId: string; mils: number; reason: string };
  firstLimit: { ownerId: string; dayMils: number };
}

/** The participants of one run: two new organizations with little credit, their searches, and the ids of grants and corrections. */
export interface Participants {
  organizations: ModelOrganization[];
  searches: Search[];
  grantIds: string[];
  correctionIds: string[];
}

// The window ends in years, so only the commands decide how full it is.
const terms = {
  code: "payg",
  priceMils: 5,
  windowSeconds: 1_000_000_000,
  unpaidCalls: 1_000_000,
  startingGrantMils: 0,
  operations: [],
};
// The first organization reaches its concurrency limit, the second its rate window.
const plans: Plan[] = [
  { ...terms, windowLimit: 1_000, concurrency: 2 },
  { ...terms, windowLimit: 3, concurrency: 100 },
];
// A few charges spend all of it.
const firstGrantsMils = [15, 10];

export const keyHashes = ["a", "b"] as const;
const key = (hash: (typeof keyHashes)[number], fingerprint: string): IdempotencyKey => ({ hash, fingerprint });
const searches: { of: 0 | 1; priceMils: number; key?: IdempotencyKey }[] = [
  { of: 0, priceMils: 5 },
  { of: 0, priceMils: 10 },
  { of: 0, priceMils: 6 },
  { of: 0, priceMils: 0 },
  { of: 0, priceMils: 5, key: key("a", "q") },
  { of: 0, priceMils: 5, key: key("a", "q") },
  { of: 0, priceMils: 4, key: key("a", "q") },
  { of: 0, priceMils: 5, key: key("a", "other") },
  { of: 0, priceMils: 6, key: key("b", "q") },
  { of: 0, priceMils: 5, key: key("b", "q") },
  { of: 1, priceMils: 5 },
  { of: 1, priceMils: 6 },
  { of: 1, priceMils: 5, key: key("a", "q") },
  { of: 1, priceMils: 5, key: key("a", "q") },
  { of: 1, priceMils: 5, key: key("a", "q") },
];
export const searchesMax = searches.length;
export const grantsMax = 4;
export const correctionsMax = 4;

export async function createParticipants(database: Database): Promise<Participants> {
  const organizations = await Promise.all(
    plans.map(async (plan, at) => {
      const made = await createOrganization(database, { name: "Model", planCode: plan.code });
      const id = made?.organizationId ?? "";
      const firstGrant = { grantId: newId("grant"), mils: firstGrantsMils[at] ?? 0, reason: "first" };
      await grantCredit(database, { organizationId: id, ...firstGrant });
      const tokens = [await issueToken(database, id), await issueToken(database, id)];
      const tokenIds = tokens.map((token) => token?.tokenId ?? "");
      // Commands change it, or set others.
      const firstLimit = { ownerId: at === 0 ? (tokenIds[0] ?? "") : id, dayMils: 10 };
      await changeLimits(database, at === 0 ? "token" : "organization", firstLimit.ownerId, firstLimit);
      return { id, plan, tokenIds, firstGrant, firstLimit };
    }),
  );
  return {
    organizations,
    searches: searches.flatMap(({ of, ...search }, at) => {
      const { id = "", plan, tokenIds = [] } = organizations[of] ?? {};
      const tokenId = tokenIds[at % 2] ?? "";
      return plan ? [{ key: undefined, ...search, requestId: newId("req"), organizationId: id, tokenId, plan }] : [];
    }),
    grantIds: Array.from({ length: grantsMax }, () => newId("grant")),
    correctionIds: Array.from({ length: correctionsMax }, () => newId("correction")),
  };
}

/** Replaces the ids of this run by readable names. */
export function readable(participants: Participants, text: string): string {
  const names = new Map<string, string>([
    ...participants.organizations.map(({ id }, at): [string, string] => [id, `organization ${at}`]),
    ...participants.organizations.flatMap(({ tokenIds }, at) =>
      tokenIds.map((id, place): [string, string] => [id, `token ${place} of ${at}`]),
    ),
    ...participants.searches.map(({ requestId }, at): [string, string] => [requestId, `search ${at}`]),
    ...participants.grantIds.map((id, at): [string, string] => [id, `grant ${at}`]),
    ...participants.correctionIds.map((id, at): [string, string] => [id, `correction ${at}`]),
  ]);
  return [...names].reduce((replaced, [id, name]) => replaced.replaceAll(id, name), text);
}
