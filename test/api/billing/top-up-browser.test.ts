import { beforeEach, describe, expect, test } from "vitest";
import { openBrowser, signInAt, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { forgetSignIns, signIn } from "../../harness/clients/page-visitor.ts";
import { acknowledged, sendEvent } from "../../harness/clients/topups.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { eventOf } from "../../harness/stubs/stripe-stub.ts";

/** A payer on the way to Stripe and back. */

const checkoutOrigin = "https://checkout.stripe.com";

const { stub, service, url } = await startStripeService({ workers: 0, ownPort: true });
beforeEach(() => forgetSignIns(service));

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  test("a session cookie that was planted for the payment's path begins no payment", async () => {
    const organization = await service.organization();
    const attacker = await signIn(service, await service.organization({ creditMils: 0 }));
    const browser = await openBrowser();
    const seen = await visitor(browser, [url, checkoutOrigin]);
    const { context, page } = seen;
    await signInAt(page, service, `${url}/billing`, organization.token);
    await page.getByLabel("Amount").selectOption({ label: "$25" });
    const [name = "", value = ""] = attacker.cookie?.split("=") ?? [];
    const planted = { name, value, domain: new URL(url).hostname, sameSite: "Strict" } as const;
    const before = stub.calls.length;
    for (const path of ["/billing/topup", "/billing/"]) {
      await context.addCookies([{ ...planted, path }]);
      await page.getByRole("button", { name: "Continue to payment" }).click();
      await page.getByRole("heading", { name: "You are signed out" }).waitFor();
      await context.clearCookies({ path });
      await page.goto(`${url}/billing`);
      await page.getByLabel("Amount").selectOption({ label: "$25" });
    }
    // The own cookie is gone, and only the planted one is left when the form is sent.
    await context.clearCookies();
    await context.addCookies([{ ...planted, path: "/billing" }]);
    await page.getByRole("button", { name: "Continue to payment" }).click();
    await page.getByRole("heading", { name: "No payment was started" }).waitFor();
    expect(await faultsOf(seen, "no payment was started")).toEqual([]);
    expect(stub.calls).toHaveLength(before);
    await browser.close();
  });

  test("after the payment the person is still signed in, reads when the credit appears, and sees the credit arrive", async () => {
    const organization = await service.organization({ creditMils: 0 });
    const browser = await openBrowser();
    const seen = await visitor(browser, [url, checkoutOrigin]);
    const { page, complaints } = seen;
    // A stand-in for Stripe's page: on another site, with a link back.
    await page.route(`${checkoutOrigin}/**`, (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<!doctype html><link rel="icon" href="data:,"><a href="${stub.calls.at(-1)?.fields.success_url}">Pay</a>`,
      }),
    );
    await signInAt(page, service, `${url}/billing`, organization.token);
    expect(await faultsOf(seen, "amounts")).toEqual([]);
    await page.getByLabel("Amount").selectOption({ label: "$25" });
    await page.getByRole("button", { name: "Continue to payment" }).click();
    await page.getByRole("link", { name: "Pay" }).click();
    await page.getByText("Stripe sent you back after the payment").waitFor();
    expect(await faultsOf(seen, "back from the payment")).toEqual([]);
    await page.getByRole("status").filter({ hasText: "Live" }).waitFor();

    const paid = { ...stub.sessions.at(-1), status: "complete", payment_status: "paid" };
    expect(await sendEvent(service, eventOf(paid))).toMatchObject(acknowledged);
    await page.getByText("$25.000").first().waitFor();
    await page.getByText("+$25.000").waitFor();
    await browser.close();
    expect({ complaints, foreign: seen.foreign }).toEqual({ complaints: [], foreign: [] });
  });
});
