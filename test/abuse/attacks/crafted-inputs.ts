import { newId } from "../../../shared/ids.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { forgetPageViews, type PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import { sendEvent } from "../../harness/clients/topups.ts";
import { badTexts, distorted } from "../../harness/fixtures/bad-inputs.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { eventOf } from "../../harness/stubs/stripe-stub.ts";
import type { Attack } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

/** Values that no form or client of ours sends, in all places that lead to Postgres, to a table of names or to Stripe's types. */
export const craftedInputs: Attack = {
  name: "crafted-inputs",
  tried: "invalid ids, names of inherited properties, NULs and endless numbers in pages, forms and signed events",
  stack: { payments: true },
  run: async (stack) => {
    const { service } = stack;
    const attacker = await service.organization();
    const visitor = await signIn(stack.service, attacker);
    const outcomes: string[] = [];
    for (const text of badTexts) {
      await forgetPageViews(service);
      for (const [what, status] of Object.entries(await statusesOf(visitor, attacker, text)))
        outcomes.push(status === 500 ? `500 ${what}=${text.slice(0, 40)}` : String(status));
    }
    outcomes.push(...(await eventStatuses(stack, attacker)));
    const defects = service.apis.flatMap(({ errors }) => errors.filter(({ msg }) => msg === "unhandled error"));
    return [
      {
        promised: "each is answered, none by a 500, and no process logs a defect",
        seen: `${tally(outcomes)}; ${defects.length} defects`,
        held: defects.length === 0 && outcomes.every((outcome) => !outcome.startsWith("500")),
      },
    ];
  },
};

/** Sends a text in every place that takes an id, a name, a number of days or an amount. @returns the statuses. */
async function statusesOf(
  visitor: PageVisitor,
  { organizationId: organization, token }: Organization,
  text: string,
): Promise<Record<string, number>> {
  const inPath = encodeURIComponent(text);
  const form = { organization, id: newId("tok"), name: "a", scope: "search", expires: "30", day: "", month: "" };
  const create = (field: object) => visitor.post("/billing/tokens/create", { ...form, ...field });
  const found = new URLSearchParams({ find: "a", before: text }).toString();
  return {
    before: (await visitor.get(`/billing/searches?${found}`)).status,
    find: (await visitor.get(`/billing/searches?find=${inPath}`)).status,
    request: (await visitor.get(`/billing/searches/${inPath}`)).status,
    token: (await visitor.get(`/billing/tokens/${inPath}`)).status,
    month: (await visitor.get(`/billing/statements/${inPath}`)).status,
    expires: (await create({ expires: text })).status,
    name: (await create({ name: text })).status,
    scope: (await create({ scope: text })).status,
    id: (await create({ id: text })).status,
    day: (await create({ day: text })).status,
    organization: (await create({ organization: text })).status,
    signIn: (await visitor.post("/billing/sign-in", { token: `${token}${text}` })).status,
  };
}

/** Sends signed Stripe events, in each of which one field has another type. @returns how each was answered. */
async function eventStatuses({ service, stripe }: AttackStack, { organizationId }: Organization): Promise<string[]> {
  const outcomes: string[] = [];
  for (const event of distorted(eventOf(stripe.paid(organizationId, 1_000)))) {
    const { status } = await sendEvent(service, event);
    outcomes.push(status === 500 ? `500 ${JSON.stringify(event).slice(0, 60)}` : String(status));
  }
  return outcomes;
}
