import { newId } from "../../../shared/ids.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { PageVisitor } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Strength } from "../attack.ts";
import { lengthenLedger } from "../long-ledger.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";

const tokens = 20;
const madeWithinMs = 1_000;
const entries: Record<Strength, number> = { quick: 50_000, full: 4_000_000 };

/** An account with a long ledger creates tokens with limits, which locks its organization. */
export const limitedTokens: Attack = {
  name: "limited-tokens",
  tried: `${tokens} tokens with limits created by an account with a long ledger, while it and others search`,
  run: async (stack, strength) => {
    const attacker = await stack.service.organization({ creditMils: 1_000_000 });
    await lengthenLedger(stack.service, attacker, { entries: entries[strength] });
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
    const times = {
      promised: `in at most ${madeWithinMs} ms`,
      seen: `at most ${slowestMs.toFixed(0)} ms`,
      held: slowestMs <= madeWithinMs,
    };
    return [
      {
        promised: "each token is created",
        seen: tally(made.map(({ status }) => status)),
        held: made.every(({ status }) => status === 200),
      },
      ...(strength === "full" ? [times] : []),
      judgeHonest(answers, "every search is answered, including those of this organization"),
    ];
  },
};

const form = ({ organizationId }: Organization) => {
  const terms = { name: "crawler", scope: "search", expires: "30", day: "1.00", month: "10.00" };
  return { organization: organizationId, id: newId("tok"), ...terms };
};
