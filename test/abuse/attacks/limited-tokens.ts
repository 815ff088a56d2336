import { newId } from "../../../shared/ids.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { PageVisitor } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";

const tokens = 20;
const madeWithinMs = 1_000;
const entries: Record<Strength, number> = { quick: 100_000, full: 4_000_000 };

/** Tokens with limits, made by the account of an organization with a long ledger, which is locked meanwhile. */
export const limitedTokens: Attack = {
  name: "limited-tokens",
  tried: `${tokens} tokens with limits made by an account with a long ledger, while it and others search`,
  run: async (stack, strength) => {
    const attacker = await stack.service.organization({ creditMils: 1_000_000 });
    await lengthenLedger(stack, attacker, entries[strength]);
    const visitor = new PageVisitor(stack.service);
    await visitor.signIn(attacker.token);
    const organizations = [attacker, ...(await honestOrganizations(stack, 4))];
    const made: { status: number; ms: number }[] = [];
    const answers = await honestBeside(stack, { organizations, perSecond: 20 }, async () => {
      for (let count = 0; count < tokens; count += 1) {
        const beganAtMs = performance.now();
        const { status } = await visitor.post("/billing/tokens/create", form(attacker));
        made.push({ status, ms: performance.now() - beganAtMs });
      }
    });
    const slowestMs = Math.max(...made.map(({ ms }) => ms));
    // A quick attack runs beside other tests, where a time says nothing about the service.
    const isInTime = strength === "quick" || slowestMs <= madeWithinMs;
    return [
      {
        promised: `each token is made within ${madeWithinMs} ms`,
        seen: `${tally(made.map(({ status }) => status))}; at most ${slowestMs.toFixed(0)} ms`,
        held: made.every(({ status }) => status === 200) && isInTime,
      },
      judgeHonest(answers, "every search is answered, also of this organization"),
    ];
  },
};

const form = ({ organizationId }: Organization) => {
  const terms = { name: "crawler", scope: "search", expires: "30", day: "1.00", month: "10.00" };
  return { organization: organizationId, id: newId("tok"), ...terms };
};

/** Gives the organization so many charges of this month. */
async function lengthenLedger({ service }: AttackStack, { organizationId, tokenId }: Organization, count: number) {
  await asOwner(service.databaseUrl, async (owner) => {
    await owner.query(
      `insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
       select id, version + n, 'charge', 0, balance_mils, id || n, $2 from organizations, generate_series(1, $3) n where id = $1`,
      [organizationId, tokenId, count],
    );
    await owner.query("update organizations set version = version + $2 where id = $1", [organizationId, count]);
  });
}
