import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser, signInAt, visitor } from "../../harness/clients/browser.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { Service } from "../../harness/processes/service.ts";

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let service: Service;
  let browser: Browser;
  beforeAll(async () => {
    service = await Service.start();
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
  });

  test.each([{ script: true }, { script: false }])(
    "a person makes a token, reads it, limits it and revokes it: script $script, on a phone",
    async ({ script }) => {
      const url = service.apis[0]?.url ?? "";
      const person = await visitor(browser, [url], { width: 320, script });
      const { page, foreign, complaints } = person;
      const organization = await service.organization();
      await signInAt(page, service, `${url}/billing/tokens`, organization.token);
      await page.getByLabel("Name").fill("crawler of the shop");
      await page.getByLabel("Daily limit").fill("much");
      await page.getByRole("button", { name: "Create token" }).click();
      await page.getByText("Enter US dollars").waitFor();
      expect(await faultsOf(person, "a field that is wrong")).toEqual([]);
      await page.getByLabel("Daily limit").fill("2.50");
      await page.getByRole("button", { name: "Create token" }).click();
      await page.getByRole("heading", { name: "Copy the token now" }).waitFor();
      const token = (await page.locator("#token").textContent()) ?? "";
      expect((await service.search(token, { keyword: "coffee" })).status).toBe(200);
      expect(await page.getByRole("button", { name: "Copy" }).count()).toBe(script ? 1 : 0);
      expect(await faultsOf(person, "a new token")).toEqual([]);
      await page.getByRole("link", { name: "I have copied it" }).click();
      await page.getByRole("link", { name: "crawler of the shop", exact: true }).click();
      await page.getByLabel("Monthly limit").fill("30");
      await page.getByRole("button", { name: "Save limits" }).click();
      await page.getByText("Limits saved").waitFor();
      expect(await faultsOf(person, "one token")).toEqual([]);
      await page.getByText("Revoke “crawler of the shop”").click();
      await page.getByRole("button", { name: "Revoke permanently" }).click();
      await page.getByText("Token revoked").waitFor();
      expect(await faultsOf(person, "a revoked token")).toEqual([]);
      await service.until(async () => (await service.search(token, { keyword: "coffee" })).status === 401);
      expect(foreign).toEqual([]);
      expect(complaints.filter((text) => !text.startsWith("Failed to load resource: "))).toEqual([]);
    },
  );

  test("a form without a scope is refused in place, and the focus goes to what is missing", async () => {
    const url = service.apis[0]?.url ?? "";
    const { page } = await visitor(browser, [url]);
    await signInAt(page, service, `${url}/billing/tokens`, (await service.organization()).token);
    await page.getByLabel("Name").fill("of nothing");
    for (const scope of await page.getByRole("group", { name: "Scopes" }).getByRole("checkbox").all())
      await scope.uncheck();
    await page.getByRole("button", { name: "Create token" }).click();
    await page.locator("#scope-problem:focus").waitFor();
    expect(await page.getByLabel("Name").inputValue()).toBe("of nothing");
  });

  test("the button beside a new token copies it, says so, and offers to copy it again", async () => {
    const url = service.apis[0]?.url ?? "";
    const { page } = await visitor(browser, [url]);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.clock.install();
    const organization = await service.organization();
    await signInAt(page, service, `${url}/billing/tokens`, organization.token);
    await page.getByLabel("Name").fill("crawler");
    await page.getByRole("button", { name: "Create token" }).click();
    const token = await page.locator("#token").textContent();

    await page.getByRole("button", { name: "Copy" }).click();

    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(token);
    await page.clock.runFor(2_000);
    await page.getByRole("button", { name: "Copy", exact: true }).waitFor();
  });
});
