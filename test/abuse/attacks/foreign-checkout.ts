import { type PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Session } from "../../harness/stubs/stripe-objects.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

const mils = "10000";

/** Form bodies that name another organization than the one that is signed in, by their trick. */
const formsOf = (own: string, other: string): Record<string, string> => ({
  "the other id": `organization=${other}&mils=${mils}`,
  "the other id after the own": `organization=${own}&organization=${other}&mils=${mils}`,
  "the other id before the own": `organization=${other}&organization=${own}&mils=${mils}`,
  "both in one field": `organization=${own},${other}&mils=${mils}`,
  "an array": `organization[]=${other}&organization=${own}&mils=${mils}`,
  "Stripe's own fields": `organization=${own}&mils=${mils}&client_reference_id=${other}&metadata[organizationId]=${other}`,
  "an empty id": `organization=&mils=${mils}`,
  "upper case": `organization=${own.toUpperCase()}&mils=${mils}`,
  "a NUL behind it": `organization=${own}%00${other}&mils=${mils}`,
  "a line end in it": `organization=${own}%0d%0a${other}&mils=${mils}`,
});
/** Appended to the path, in case a handler reads the query string. */
const queries = (other: string) => ["", `?organization=${other}`, `?client_reference_id=${other}`];

/** A person is signed in as one organization and submits forms that name another. */
export const foreignCheckout: Attack = {
  name: "foreign-checkout",
  tried: "top-up forms with another organization's id in each field, in the query string and in Stripe's own fields",
  stack: { payments: true },
  run: async (stack) => {
    const { service, stripe } = stack;
    const [own, other] = [await service.organization(), await service.organization()];
    const visitor = await signIn(stack.service, own);
    const before = stripe.sessions.length;
    const outcomes: string[] = [];
    for (const [what, form] of Object.entries(formsOf(own.organizationId, other.organizationId)))
      for (const query of queries(other.organizationId))
        outcomes.push(`${what}${query.replace(/=.*/, "")}: ${await topUp(stack, visitor, { query, form })}`);
    return [judge(own, other, stripe.sessions.slice(before), outcomes)];
  },
};

async function topUp(
  { service }: AttackStack,
  { cookie = "" }: PageVisitor,
  { query, form }: { query: string; form: string },
): Promise<number> {
  const headers = { cookie, "sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded" };
  const sending = { method: "POST", headers, body: form, redirect: "manual" } as const;
  return (await service.send(`/billing/topup${query}`, sending)).status;
}

function judge(
  { organizationId: own }: Organization,
  { organizationId: other }: Organization,
  begun: readonly Session[],
  outcomes: readonly string[],
): Finding {
  const foreign = begun.filter(
    (session) => session.client_reference_id !== own || JSON.stringify(session).includes(other),
  );
  return {
    promised: "every payment credits the organization that is signed in, and no form causes an error",
    seen: `${outcomes.length} forms, ${begun.length} payments, ${foreign.length} for another; ${tally(outcomes.map((outcome) => outcome.slice(-3)))}`,
    held: foreign.length === 0 && begun.length > 0 && outcomes.every((outcome) => /(303|400)$/.test(outcome)),
  };
}
