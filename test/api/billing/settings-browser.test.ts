import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../local/ports.ts";
import { openBrowser, signInAt, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { Service } from "../../harness/processes/service.ts";
import { WebhookReceiver } from "../../harness/stubs/webhook-receiver.ts";

let service: Service;
let receiver: WebhookReceiver;
let url: string;
beforeAll(async () => {
  const port = String(await freePort());
  url = `http://127.0.0.1:${port}`;
  receiver = await WebhookReceiver.start();
  service = await Service.start({ environment: { WEBHOOK_TARGETS: "any", API_PORT: port } });
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  test("the secret of a first webhook stands below its sentence and has a button that copies it, also on a phone", async () => {
    const { token } = await service.organization();
    const browser = await openBrowser();
    const person = await visitor(browser, [url], { width: 320 });
    const { page } = person;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await signInAt(page, service, `${url}/billing/settings`, token);
    await page.getByLabel("Address").fill(receiver.url);
    await page.getByRole("button", { name: "Save", exact: true }).last().click();
    const sentence = await page.getByText("It is shown only now").boundingBox();
    const secret = page.locator("#webhook-secret");
    const below = await secret.boundingBox();
    expect(below?.y).toBeGreaterThanOrEqual((sentence?.y ?? 0) + (sentence?.height ?? Number.POSITIVE_INFINITY));
    expect(await faultsOf(person, "a new secret")).toEqual([]);
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(await secret.textContent());
    await browser.close();
  });
});
