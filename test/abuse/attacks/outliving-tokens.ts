import { newId } from "../../../shared/ids.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { forgetPageViews, type PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

const expiresInDays = 10;
const expiries = ["", "7", "30", "365", "constructor"];
const limits = [
  { day: "", month: "" },
  { day: "5", month: "50" },
  { day: "5.001", month: "50" },
  { day: "5", month: "1000000" },
];
const secret = />(smk_[a-z0-9]{39})</;

/** The holder of an account token that expires soon tries to keep its access and to spend more. */
export const outlivingTokens: Attack = {
  name: "outliving-tokens",
  tried: `tokens with all expiries and limits, created by a billing token that expires in ${expiresInDays} days and by its tokens; then their limits are raised`,
  run: async (stack) => {
    const attacker = await stack.service.organization();
    const bounded = await boundedToken(stack, attacker);
    const outcomes: string[] = [];
    const child = await makeAll(stack, attacker, { token: bounded.token, outcomes });
    await makeAll(stack, attacker, { token: child ?? bounded.token, outcomes });
    return [await judge(stack, attacker, { issuedId: bounded.tokenId, outcomes })];
  },
};

async function boundedToken({ service }: AttackStack, { organizationId }: Organization) {
  const issued = await issueToken(service.database, organizationId, { scopes: ["billing"], expiresInDays });
  if (!issued) throw new Error("no token");
  await changeLimits(service.database, "token", issued.tokenId, { dayMils: 5_000, monthMils: 50_000 });
  return issued;
}

/** Submits every form with one token, then tries to raise the limits of all. @returns an account token that was created. */
async function makeAll(
  stack: AttackStack,
  { organizationId: organization }: Organization,
  { token, outcomes }: { token: string; outcomes: string[] },
): Promise<string | undefined> {
  const { service } = stack;
  const visitor = await signIn(stack.service, { token });
  let made: string | undefined;
  for (const expires of expiries)
    for (const limit of limits) {
      const form = { organization, id: newId("tok"), name: "kept", scope: "billing", expires, ...limit };
      const { status, text } = await post(stack, visitor, { action: "create", form });
      outcomes.push(`made ${status}`);
      made ??= secret.exec(text)?.[1];
    }
  const { rows } = await service.database.query("select id from tokens where organization_id = $1 and name = 'kept'", [
    organization,
  ]);
  for (const { id } of rows)
    for (const limit of limits) {
      const form = { organization, token: id, ...limit };
      outcomes.push(`raised ${(await post(stack, visitor, { action: "limits", form })).status}`);
    }
  return made;
}

async function post(
  { service }: AttackStack,
  visitor: PageVisitor,
  { action, form }: { action: string; form: Record<string, string> },
) {
  await forgetPageViews(service); // It spares the attacker minutes of waiting.
  return visitor.post(`/billing/tokens/${action}`, form);
}

async function judge(
  { service }: AttackStack,
  { organizationId }: Organization,
  { issuedId, outcomes }: { issuedId: string; outcomes: readonly string[] },
): Promise<Finding> {
  const { rows } = await service.database.query(
    `select count(*) as made, count(*) filter (where not coalesce(
       made.expires_at <= issued.expires_at and made.day_limit_mils <= issued.day_limit_mils
         and made.month_limit_mils <= issued.month_limit_mils, false)) as larger
     from tokens made, tokens issued where made.organization_id = $1 and made.name = 'kept' and issued.id = $2`,
    [organizationId, issuedId],
  );
  const [made, larger] = [Number(rows[0].made), Number(rows[0].larger)];
  return {
    promised: "no created token expires later or may spend more than the attacker's own",
    seen: `${made} tokens, ${larger} with more; ${tally(outcomes)}`,
    held: made > 0 && larger === 0,
  };
}
