import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../local/ports.ts";
import { revokeToken } from "../../../api/tokens/tokens.ts";
import { openBrowser, signInAt, type Visitor, visitor } from "../../harness/clients/browser.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { aMonth, backdateLedger, logSearches } from "../../harness/fixtures/backdate-ledger.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";

/** The billing page in a browser. It must not request anything from other origins, and its policy must not block anything. */

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let service: Service;
  let browser: Browser;
  let url: string;
  const visitors: Visitor[] = [];
  beforeAll(async () => {
    service = await Service.start();
    browser = await openBrowser();
    url = service.apis[0]?.url ?? "";
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
  });

  async function openPage(looks: Parameters<typeof visitor>[2] = {}): Promise<Visitor> {
    const person = await visitor(browser, [url], looks);
    visitors.push(person);
    return person;
  }

  async function signIn({ page }: Visitor, { token }: Organization, at = url) {
    await signInAt(page, service, `${at}/billing`, token);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  }

  async function organizationWithAMonth() {
    const organization = await service.organization({ creditMils: 0 });
    await backdateLedger(service.databaseUrl, organization.organizationId, aMonth(new Date()));
    return organization;
  }

  const live = (person: Visitor) => person.page.getByRole("status").filter({ hasText: "Live" }).waitFor();

  test("a wrong token is refused with a message, a right one signs in, and after a sign-out the back button shows nothing", async () => {
    const person = await openPage();
    const { page } = person;
    await page.goto(`${url}/billing`);
    await page.keyboard.type("smk_wrong"); // The field has the focus.
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: "This token is not valid" }).waitFor();
    await signIn(person, await service.organization());
    expect(page.url()).toBe(`${url}/billing`);
    await live(person);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.getByText("$1.00").count()).toBe(0);
    expect(await person.context.storageState()).toMatchObject({ cookies: [], origins: [] });
  });

  test("the history can be filtered, paged and downloaded as CSV", async () => {
    const person = await openPage();
    await signIn(person, await organizationWithAMonth());
    const { page } = person;
    await page.getByRole("navigation", { name: "Account" }).getByRole("link", { name: "Searches" }).click();
    await page.waitForURL(/billing\/searches/);
    await page.getByRole("link", { name: "Not charged" }).click();
    await page.waitForURL(/show=refunded/);
    expect(await page.locator(".outcome").allTextContents()).toEqual(Array.from({ length: 25 }, () => "Not charged"));
    const newest = await page.locator(".history code").allTextContents();
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForURL(/before=/);
    expect((await page.locator(".history code").allTextContents()).filter((id) => newest.includes(id))).toEqual([]);
    const downloading = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download CSV" }).click();
    expect((await downloading).suggestedFilename()).toBe("serpmill-refunded.csv");
    await page.getByRole("link", { name: "Newest" }).click();
    expect(await page.locator(".history code").allTextContents()).toEqual(newest);
  });

  test("the numbers of a day are shown under the pointer, by keyboard, and in a table", async () => {
    const person = await openPage();
    const organization = await organizationWithAMonth();
    await logSearches(service.databaseUrl, organization.organizationId);
    await signIn(person, organization);
    const { page } = person;
    const days = page.locator(".chart").first().locator(".day");
    await days.nth(5).hover();
    expect(await days.nth(5).locator(".summary").isVisible()).toBe(true);
    expect(await days.nth(5).locator(".summary").textContent()).toMatch(/^\d+ \w{3}: \d+ searches, \d+ not charged$/);
    await page.mouse.move(0, 0);
    await days.last().focus();
    await page.keyboard.press("ArrowLeft");
    expect(await days.nth(28).locator(".summary").isVisible()).toBe(true);
    expect(await days.last().locator(".summary").isVisible()).toBe(false);
    await page.keyboard.press("Home");
    expect(await days.first().evaluate((day) => day.matches(":focus"))).toBe(true);
    await page.getByText("Show the numbers as a table").click();
    expect(await page.getByRole("region", { name: "Usage as a table" }).getByRole("row").count()).toBe(31);
    await page.getByRole("link", { name: "90 days" }).click();
    await page.getByRole("link", { name: "Dollars" }).click();
    await page.waitForURL(/measure=dollars&range=90d/);
    expect(await days.count()).toBe(90);
    expect(await days.last().getAttribute("aria-label")).toMatch(/^\d+ \w{3}: \$\d+\.\d+ charged/);
    await page.getByRole("link", { name: "Latency" }).click();
    await page.waitForURL(/measure=latency&range=90d/);
    await days.last().focus();
    await page.keyboard.press("ArrowLeft");
    expect(await days.nth(88).locator(".summary").isVisible()).toBe(true);
    expect(await days.nth(88).getAttribute("aria-label")).toMatch(
      /: median [\d.]+ m?s, 95th percentile [\d.]+ m?s, of \d+ search/,
    );
    expect(await days.nth(88).locator("circle").first().isVisible()).toBe(true);
    expect(await days.nth(87).locator("circle:visible").count()).toBe(0);
  });

  test("the open page ends the session when its token is revoked", async () => {
    const person = await openPage();
    const organization = await service.organization();
    await signIn(person, organization);
    await live(person);
    await revokeToken(service.database, organization.tokenId);
    await person.page.getByText("Your session has ended").waitFor();
    expect(await person.page.getByText(organization.organizationId).count()).toBe(0);
  });

  test("the open page ends a session that ended while the API was down, once the API is back", async () => {
    const API_PORT = String(await freePort());
    const first = await service.startApi({ API_PORT });
    const person = await visitor(browser, [first.url]);
    const organization = await service.organization();
    await signIn(person, organization, first.url);
    await live(person);
    first.kill("SIGKILL");
    await person.page.getByText("Updates paused").waitFor();
    await revokeToken(service.database, organization.tokenId);
    await service.startApi({ API_PORT });
    await person.page.getByText("Your session has ended").waitFor();
    expect(await person.page.getByText(organization.organizationId).count()).toBe(0);
  });

  test("without JavaScript everything but the live updates works", async () => {
    const person = await openPage({ script: false });
    const organization = await organizationWithAMonth();
    await signIn(person, organization);
    const { page } = person;
    await page.locator(".day").nth(3).hover();
    expect(await page.locator(".summary").nth(3).isVisible()).toBe(true);
    expect(await page.getByText("Live").count()).toBe(0);
    await page.getByRole("navigation", { name: "Account" }).getByRole("link", { name: "Searches" }).click();
    await page.waitForURL(/billing\/searches/);
    await page.getByRole("link", { name: "Credited back" }).click();
    await page.waitForURL(/show=reversed/);
    expect(new Set(await page.locator(".outcome").allTextContents())).toEqual(new Set(["Credited back"]));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  test("if the service is down the page says so, and it reloads by itself", async () => {
    const person = await openPage();
    await signIn(person, await service.organization());
    await live(person);
    const { port } = service.redisServer;
    await service.redisServer.stop();
    await person.page.getByText("Updates paused").waitFor();
    await person.page.goto(`${url}/billing`);
    await person.page.getByRole("heading", { name: "Back in a moment" }).waitFor();
    expect(await faultsOf(person, "the service is down")).toEqual([]);
    await service.restartRedis(port);
    await person.page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  test("none of these pages requested anything from elsewhere or violated its policy", () => {
    expect(visitors.length).toBeGreaterThan(5);
    expect(visitors.flatMap(({ foreign }) => foreign)).toEqual([]);
    const complaints = visitors.flatMap((person) => person.complaints);
    // The browser reports every page that is not a 200, and every stream that breaks.
    expect(complaints.filter((text) => !/^Failed to load resource: |net::ERR_INCOMPLETE_CHUNKED/.test(text))).toEqual(
      [],
    );
  });
});
