import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../local/ports.ts";
import { openBrowser, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { forgetSignIns } from "../../harness/clients/page-visitor.ts";
import { payerWithCard } from "../../harness/fixtures/auto-topup-payer.ts";
import { Service } from "../../harness/processes/service.ts";
import { StripeStub } from "../../harness/stubs/stripe-stub.ts";

let stub: StripeStub;
let service: Service;
let url: string;
beforeAll(async () => {
  const port = String(await freePort());
  url = `http://127.0.0.1:${port}`;
  stub = await StripeStub.start();
  service = await Service.start({ workers: 0, environment: { ...stub.environment, API_PORT: port, PUBLIC_URL: url } });
});
afterAll(async () => {
  await service.stop();
  await stub.close();
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  test("every state of the page has no barrier at 320 pixels, in light and dark", async () => {
    const paused = await payerWithCard(service, stub);
    stub.cards.bank.push({ code: "expired_card" });
    await paused.switchOn();
    await service.until(async () => (await paused.page()).includes("Paused since"));
    const on = await payerWithCard(service, stub, { creditMils: 50_000 });
    await on.switchOn();
    const states = {
      "Save a card": await service.organization(),
      "Switch on": await payerWithCard(service, stub),
      "Switch off": on,
      "Remove the card": paused,
    };
    const browser = await openBrowser();
    for (const dark of [false, true])
      for (const [button, { token }] of Object.entries(states)) {
        await forgetSignIns(service);
        const person = await visitor(browser, [url], { width: 320, dark });
        const { page } = person;
        await page.goto(`${url}/billing/payments`);
        await page.getByLabel("Token").fill(token);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("button", { name: button, exact: true }).waitFor();
        expect(await faultsOf(person, button)).toEqual([]);
        expect(person.complaints).toEqual([]);
        await person.context.close();
      }
    await browser.close();
  });
});
