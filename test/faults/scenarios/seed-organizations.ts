import type { Client } from "pg";
import { setPlan } from "../../../shared/credits/plans.ts";
import { newId } from "../../../shared/ids.ts";
import { hashToken, newToken } from "../../../api/tokens/tokens.ts";
import { priceMils } from "../audit/evidence.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Service } from "../../harness/processes/service.ts";

/** The balance of a poor organization, too little for a search. */
export const poorMils = priceMils - 1;
const poorEvery = 50;
const richMils = 1_000;

/** One of many organizations with its true balance. Balances differ, so that a mix-up shows. */
export interface SeededOrganization {
  organizationId: string;
  token: string;
  balanceMils: number;
  isPoor: boolean;
  /** At most so much is still held by searches that were refused with 503. */
  mayBeHeldMils: number;
  /** An Idempotency-Key that has paid, and its answer. */
  paid: { key: string; text: string } | undefined;
}

/** Inserts organizations with tokens and credit in bulk. Every fiftieth is too poor to search. */
export async function seedOrganizations(service: Service, size: number): Promise<SeededOrganization[]> {
  const planCode = "many";
  await setPlan(service.database, {
    code: planCode,
    priceMils,
    windowLimit: 1_000_000,
    windowSeconds: 60,
    concurrency: 100,
    operations: ["serp.search", "usage.get"],
  });
  const organizations = Array.from({ length: size }, (_, at): SeededOrganization => {
    const isPoor = at % poorEvery === poorEvery - 1;
    const balanceMils = isPoor ? poorMils : richMils + at;
    return { organizationId: newId("org"), token: newToken(), balanceMils, isPoor, mayBeHeldMils: 0, paid: undefined };
  });
  await asOwner(service.databaseUrl, (client) => insert(client, planCode, organizations));
  return organizations;
}

async function insert(client: Client, planCode: string, organizations: readonly SeededOrganization[]): Promise<void> {
  const ids = organizations.map(({ organizationId }) => organizationId);
  await client.query(
    "insert into organizations (id, name, plan_code) select id, 'Many', $2 from unnest($1::text[]) as o (id)",
    [ids, planCode],
  );
  await client.query(
    `insert into tokens (id, organization_id, hash, last4, scopes)
     select t.id, t.organization_id, t.hash, t.last4, '{search,usage,billing}'
     from unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) as t (id, organization_id, hash, last4)`,
    [
      ids.map(() => newId("tok")),
      ids,
      organizations.map((m) => hashToken(m.token)),
      organizations.map((m) => m.token.slice(-4)),
    ],
  );
  await client.query(
    `select change_credit('grant', g.id, g.grant_id, g.mils, 'scenario')
     from unnest($1::text[], $2::text[], $3::bigint[]) as g (id, grant_id, mils)`,
    [ids, ids.map(() => newId("grant")), organizations.map(({ balanceMils }) => balanceMils)],
  );
}
