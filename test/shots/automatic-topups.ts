import type { Page } from "playwright-core";
import { paymentsOf, payerWithCard } from "../harness/fixtures/auto-topup-payer.ts";
import type { Service } from "../harness/processes/service.ts";
import type { BankAnswer } from "../harness/stubs/stripe-cards.ts";
import type { StripeStub } from "../harness/stubs/stripe-stub.ts";
import type { PageState } from "./open-state.ts";

/**
 * The page of payments with a saved card, in each state of automatic top-ups. @param at the API with payments, and the page
 * there.
 */
export async function automaticTopups(
  service: Service,
  stripe: StripeStub,
  { api, url }: { api: number; url: string },
): Promise<PageState[]> {
  const payer = async (name: string, creditMils?: number) => {
    const { person, ...others } = await payerWithCard(service, stripe, { api, ...(creditMils && { creditMils }) });
    return { ...others, state: { name: `payments-automatic-${name}`, url, visitor: person } };
  };
  /** Switches automatic top-ups on while the balance is low, and waits until the bank has answered the first payment. */
  const charged = async (name: string, { ceiling, bank }: { ceiling?: string; bank?: BankAnswer } = {}) => {
    if (bank) stripe.cards.bank.push(bank);
    const { switchOn, organizationId, state } = await payer(name);
    await switchOn(ceiling === undefined ? {} : { ceiling });
    await service.until(async () =>
      (await paymentsOf(service, organizationId)).some(({ state: now }) => now !== "open"),
    );
    return state;
  };
  const off = await payer("off");
  const on = await payer("on", 50_000);
  await on.switchOn();
  return [
    { ...off.state, url: `${url}?done=card_saved` },
    { ...off.state, name: "payments-automatic-refused", act: refusedTerms },
    { ...on.state, url: `${url}?done=on` },
    await charged("charged"),
    await charged("month-is-full", { ceiling: "15" }),
    await charged("declined", { bank: { code: "card_declined", decline_code: "insufficient_funds" } }),
    await charged("paused", { bank: { code: "expired_card" } }),
  ];
}

async function refusedTerms(page: Page): Promise<void> {
  await page.getByLabel("When the balance falls below").fill("some");
  await page.getByLabel("Monthly limit (UTC)").fill("1");
  await page.getByRole("button", { name: "Switch on" }).click();
  await page.locator(".problem").first().waitFor();
}
