import { newId } from "../../../shared/ids.ts";
import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { forgetPageViews, type PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";
import type { Attack } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { judgeCharges } from "../judges/money.ts";

const inFlightMax = 5;
const unpaidCalls = 16;
const pages = 10;
const pageMs = 300;
const boundMs = 60_000;
// With two cancellations each, fewer than the 60 requests for pages that an organization has a minute.
const forms = 15;
// One token may use half of the budget; the calls in flight when that is used up come on top.
const callsMax = unpaidCalls / 2 + inFlightMax * pages;

/** A person cancels deep searches of the playground twice, first as soon as the first call was sent. */
export const cancelledForms: Attack = {
  name: "cancelled-forms",
  tried: `${forms} playground searches of depth ${pages * 10} with a budget of ${unpaidCalls} unpaid calls an hour, each cancelled once the provider has been asked and again when it has ended`,
  run: async (stack) => {
    const { service, provider } = stack;
    provider.otherwise = delayed(pageMs);
    const attacker = await service.organization({ terms: { concurrency: inFlightMax, unpaidCalls } });
    await forgetPageViews(service);
    const person = await signIn(service, attacker);
    const ends: string[] = [];
    let sent = 0;
    await keepInFlight(inFlightMax, async () => {
      const n = sent++;
      if (n < forms) ends.push(await searchAndCancel(stack, attacker, person, n));
      return sent < forms;
    });
    const answered = ends.filter((end) => end.startsWith("200")).length;
    const calls = provider.requests.filter(({ body }) => String(body["q"]).startsWith("form")).length;
    return [
      {
        promised: `at most ${callsMax} provider calls stay unpaid, then 429 unpaid_calls`,
        seen: `${calls} provider calls; ${tally(ends)}`,
        held: calls - answered * pages <= callsMax && ends.some((end) => end.startsWith("429 unpaid_calls")),
      },
      await judgeCharges(stack, [attacker], answered),
    ];
  },
};

/** @returns the status of the search's page, the reason if the budget refused it, and the outcomes of its two cancellations. */
async function searchAndCancel(
  { provider }: AttackStack,
  { organizationId: organization }: Organization,
  person: PageVisitor,
  n: number,
): Promise<string> {
  const fields = { organization, key: newId("req"), keyword: `form ${n}`, depth: String(pages * 10) };
  let isOver = false;
  const page = person.post("/playground/search", fields).finally(() => {
    isOver = true;
  });
  const isAsked = () => provider.requests.some(({ body }) => body["q"] === fields.keyword);
  await becomes(async () => isAsked() || isOver, boundMs);
  const cancel = async () => {
    const { status, text } = await person.post("/playground/cancel", fields);
    return status === 200 ? JSON.parse(text).outcome : String(status);
  };
  const first = await cancel();
  const { status, text } = await page;
  const reason = text.includes("unpaid_calls") ? " unpaid_calls" : "";
  return `${status}${reason} ${first} ${await cancel()}`;
}
