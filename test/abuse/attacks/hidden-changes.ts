import { issueToken } from "../../../api/tokens/tokens.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { forgetPageViews, ownForm, PageVisitor } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";

const changesMax = 200;
const signInsMax = 1_000;
const tokens = 6; // Each signs in 200 times a day.
const rounds: Record<Strength, { changes: number; signIns: number }> = {
  quick: { changes: changesMax + 5, signIns: 1 },
  full: { changes: 300, signIns: 4 },
};

/** Sign-ins between the changes of an account, so that a count of its newest audit entries would miss changes. */
export const hiddenChanges: Attack = {
  name: "hidden-changes",
  tried: `${rounds.full.changes} changes of an account in a day with ${rounds.full.signIns} sign-ins before each, from as many networks`,
  stack: { settings: { TRUSTED_PROXIES: "1" } },
  run: async (stack, strength) => {
    const attacker = await stack.service.organization();
    let outcomes: Outcomes = { signIns: [], changes: [] };
    const honest = await judgeHonestBeside(stack, async () => {
      outcomes = await changeAll(stack, attacker, rounds[strength]);
    });
    return [...(await judge(stack, attacker, outcomes)), honest];
  },
};

interface Outcomes {
  signIns: number[];
  changes: number[];
}

async function changeAll(
  { service }: AttackStack,
  { organizationId }: Organization,
  { changes, signIns }: { changes: number; signIns: number },
): Promise<Outcomes> {
  const issued = await Promise.all(Array.from({ length: tokens }, () => issueToken(service.database, organizationId)));
  const outcomes: Outcomes = { signIns: [], changes: [] };
  let visitor: PageVisitor | undefined;
  for (let change = 1; change <= changes; change += 1) {
    await forgetPageViews(service); // It spares the attacker minutes of waiting.
    for (let nth = 0; nth < signIns; nth += 1) {
      const count = outcomes.signIns.length;
      const next = new PageVisitor(service, { "x-forwarded-for": `10.0.${count >> 8}.${count & 255}` });
      const { status } = await next.signIn(issued[count % tokens]?.token ?? "");
      outcomes.signIns.push(status);
      if (status === 303) visitor = next;
    }
    const fields = { organization: organizationId, dollars: String(change) };
    const changed = await visitor?.post("/billing/settings/low-balance", fields, ownForm);
    outcomes.changes.push(changed?.status ?? 0);
  }
  return outcomes;
}

/** Both leave audit entries, so these bounds are what an account can cost the operator in a day. */
async function judge(
  { service }: AttackStack,
  { organizationId }: Organization,
  { signIns, changes }: Outcomes,
): Promise<Finding[]> {
  const { rows } = await service.database.query(
    `select count(*) filter (where action = 'low_balance.set') as changes,
       count(*) filter (where action = 'session.opened') as "signIns"
     from audit_entries where organization_id = $1`,
    [organizationId],
  );
  const [made, opened] = [Number(rows[0].changes), Number(rows[0].signIns)];
  return [
    {
      promised: `at most ${changesMax} changes a day, the others get 429`,
      seen: `${made} changes; ${tally(changes)}`,
      held: made === changesMax && changes.slice(changesMax).every((status) => status === 429),
    },
    {
      promised: `at most ${signInsMax} sign-ins of an organization a day`,
      seen: `${opened} sign-ins; ${tally(signIns)}`,
      held: opened <= signInsMax && opened > 0,
    },
  ];
}
