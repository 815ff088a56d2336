import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../local/ports.ts";
import { revokeToken } from "../../../api/tokens/tokens.ts";
import { openBrowser, signInAt, type Visitor, visitor } from "../../harness/clients/browser.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { aMonth, backdateLedger, logSearches } from "../../harness/fixtures/backdate-ledger.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";

/** The account pages in a browser. They must not request anything from other origins, and their policy must not block anything. */

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

  /** A page of the account of a new organization, or of this one, whose visitor has signed in there. */
  async function openAt(path: string, looks: Parameters<typeof visitor>[2] = {}, token?: string): Promise<Visitor> {
    const person = await openPage(looks);
    await signInAt(person.page, service, url + path, token ?? (await service.organization()).token);
    await person.page.getByRole("button", { name: "Sign out" }).waitFor();
    return person;
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
    expect(await page.getByText("$1.000").count()).toBe(0);
    expect(await person.context.storageState()).toMatchObject({ cookies: [], origins: [] });
  });

  test("forms and filters answer in place: the page is not loaded again, the focus goes to what changed, and back and forward work", async () => {
    const person = await openAt("/billing/settings");
    const { page } = person;
    const loads = () => page.evaluate("performance.timeOrigin");
    const focused = (locator: ReturnType<typeof page.locator>) =>
      service.until(() => locator.evaluate((element) => element.matches(":focus")));
    const loaded = await loads();
    const threshold = page.getByLabel("Threshold in US dollars");
    const save = page.getByRole("button", { name: "Save threshold" });
    await threshold.fill("many");
    await save.click();
    await page.locator(".problem").waitFor();
    await focused(threshold);
    await threshold.fill("7.5");
    await save.click();
    await page.waitForURL(/\/billing\/settings\?done=/);
    await focused(page.locator("main [role=status]"));
    expect(await threshold.inputValue()).toBe("7.50");
    expect(await loads()).toBe(loaded);

    await page.goto(`${url}/billing/searches`);
    const listed = await loads();
    await page.keyboard.press("/");
    await focused(page.getByRole("searchbox"));
    await page.keyboard.type("tea");
    await page.keyboard.press("Enter");
    await page.waitForURL(/find=tea/);
    await focused(page.getByRole("searchbox"));
    await page.getByRole("link", { name: "Refused", exact: true }).click();
    await page.waitForURL(/show=refused/);
    await focused(page.getByRole("link", { name: "Refused", exact: true }));
    await page.goBack();
    await page.getByText("Only searches whose keyword").waitFor();
    expect(page.url()).toMatch(/find=tea/);
    await page.goBack();
    await page.getByText("Credit added", { exact: true }).last().waitFor();
    await live(person);
    await page.goForward();
    await page.getByText("Only searches whose keyword").waitFor();
    expect(await page.title()).toBe("Searches · Serpmill");
    expect(await loads()).toBe(listed);
  });

  test("a form without a scope is refused in place, and the focus goes to what is missing", async () => {
    const { page } = await openAt("/billing/tokens");
    await page.getByLabel("Name").fill("of nothing");
    for (const scope of await page.getByRole("group", { name: "Scopes" }).getByRole("checkbox").all())
      await scope.uncheck();
    await page.getByRole("button", { name: "Create token" }).click();
    await page.locator("#scope-problem:focus").waitFor();
    expect(await page.getByLabel("Name").inputValue()).toBe("of nothing");
  });

  test("the secret of a first webhook stands below its sentence, also on a phone, and has a button that copies it, says so, and offers to copy it again", async () => {
    const person = await openAt("/billing/settings", { width: 320 });
    const { page } = person;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.clock.install();
    await page.getByLabel("Address").fill("https://hooks.example/");
    await page.getByRole("button", { name: "Save address" }).click();
    const sentence = await page.getByText("It is shown only now").boundingBox();
    const secret = page.locator("#webhook-secret");
    const below = await secret.boundingBox();
    expect(below?.y).toBeGreaterThanOrEqual((sentence?.y ?? 0) + (sentence?.height ?? Number.POSITIVE_INFINITY));
    expect(await faultsOf(person, "a new secret")).toEqual([]);
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(await secret.textContent());
    await page.clock.runFor(2_000);
    await page.getByRole("button", { name: "Copy", exact: true }).waitFor();
  });

  test("a webhook is removed by a second click, after the first has shown the consequence", async () => {
    const { page } = await openAt("/billing/settings");
    await page.getByLabel("Address").fill("https://hooks.example/");
    await page.getByRole("button", { name: "Save address" }).click();
    await page.getByText("It is shown only now").waitFor();
    const remove = page.getByRole("button", { name: "Remove permanently" });
    expect(await remove.isVisible()).toBe(false);
    await page.getByText("Remove the webhook").click();
    expect(await page.getByText("This cannot be undone.").isVisible()).toBe(true);
    await remove.click();
    await page.getByText("Webhook removed.").waitFor();
  });

  test("an address that does not exist leads a browser to the pages that do, and a program gets the error", async () => {
    const person = await openPage();
    await person.page.goto(`${url}/bilings`);
    await person.page.getByRole("heading", { name: "Page not found" }).waitFor();
    await person.page.getByRole("link", { name: "Reference" }).waitFor();
    await person.page.getByRole("link", { name: "Searches" }).click();
    await person.page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await service.send("/bilings")).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
  });

  test("a form that is sent after the session has ended keeps what was entered, and is saved after a sign-in in another tab", async () => {
    const { token } = await service.organization();
    const { page, context } = await openAt("/billing/settings", {}, token);
    const threshold = page.getByLabel("Threshold in US dollars");
    await context.clearCookies();
    await threshold.fill("5");
    for (let sent = 1; sent <= 2; sent += 1) {
      await threshold.press("Enter");
      await page.getByRole("alert").filter({ hasText: "Sign in in another tab" }).and(page.locator(":focus")).waitFor();
      expect([await threshold.inputValue(), await page.getByRole("alert").count()]).toEqual(["5", 1]);
    }
    await signInAt(await context.newPage(), service, `${url}/billing`, token);
    await threshold.press("Enter");
    await page.getByText("Threshold saved: $5.00.").waitFor();
  });

  test("saving one form keeps what was entered in the others and is not saved yet", async () => {
    const { page } = await openAt("/billing/settings");
    await page.getByLabel("Monthly limit").fill("20");
    await page.getByLabel("Address").fill("https://hooks.example/");
    await page.getByLabel("Threshold in US dollars").fill("7.5");
    await page.getByRole("button", { name: "Save threshold" }).click();
    await page.getByText("Threshold saved: $7.50.").waitFor();
    const valueOf = (label: string) => page.getByLabel(label).inputValue();
    const labels = ["Threshold in US dollars", "Daily limit", "Monthly limit", "Address"];
    expect(await Promise.all(labels.map(valueOf))).toEqual(["7.50", "", "20", "https://hooks.example/"]);
    await page.getByRole("button", { name: "Save limits" }).click();
    await page.getByText("Limits saved. Daily: none. Monthly: $20.00.").waitFor();
    expect(await valueOf("Address")).toBe("https://hooks.example/");

    await page.goto(`${url}/billing/tokens`);
    await page.getByRole("rowheader").getByRole("link").first().click();
    await page.getByLabel("This token expires").selectOption("In a week");
    await page.getByLabel("Daily limit").fill("5");
    await page.getByRole("button", { name: "Save limits" }).click();
    await page.getByText("Limits saved. Daily: $5.00. Monthly: none.").waitFor();
    expect(await valueOf("This token expires")).toBe("604800");
  });

  test("a form that comes after too many changes keeps what was entered, and says why nothing was changed", async () => {
    const { organizationId, tokenId, token } = await service.organization();
    await service.database.query(
      `insert into audit_entries (actor_kind, actor, action, organization_id)
       select 'account', $2, 'low_balance.set', $1 from generate_series(1, 200)`,
      [organizationId, tokenId],
    );
    const { page } = await openAt("/billing/settings", {}, token);
    const threshold = page.getByLabel("Threshold in US dollars");
    await threshold.fill("5");
    await threshold.press("Enter");
    await page.getByRole("alert").filter({ hasText: "Too many changes. Nothing was changed: " }).waitFor();
    expect(await threshold.inputValue()).toBe("5");
  });

  test.each([
    { title: "the service does not answer", failing: (route: Route) => route.abort() },
    {
      title: "a proxy answers with a page of its own",
      failing: (route: Route) =>
        route.fulfill({ status: 503, contentType: "text/html", body: "<html><body>no server" }),
    },
  ])("if $title, a form stays, says so, and is not sent again, also over plain http", async ({ failing }) => {
    const { page } = await openAt("/billing");
    // A browser has it over https only.
    await page.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.goto(`${url}/billing/settings`);
    await page.route("**/billing/settings/low-balance", failing);
    await page.getByLabel("Threshold in US dollars").fill("5");
    await page.getByLabel("Threshold in US dollars").press("Enter");
    await page.getByRole("alert").filter({ hasText: "The service did not answer" }).waitFor();
    expect(await page.getByLabel("Threshold in US dollars").inputValue()).toBe("5");
  });

  test("the numbers of a day are shown under the pointer, by keyboard, and in a table", async () => {
    const { organizationId, token } = await organizationWithAMonth();
    await logSearches(service.databaseUrl, organizationId);
    const { page } = await openAt("/billing", {}, token);
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
    await page.keyboard.press("Control+End");
    expect(await days.first().evaluate((day) => day.matches(":focus"))).toBe(true);
    await page.getByText("Show the numbers as a table").click();
    expect(await page.getByRole("region", { name: "Usage as a table" }).getByRole("row").count()).toBe(31);
    await page.getByRole("link", { name: "90 days" }).click();
    await page.waitForURL(/range=90d/);
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

  test("a filter that is chosen while another one loads is the one that is shown", async () => {
    const { page } = await openAt("/billing", {}, (await organizationWithAMonth()).token);
    const isChosen = Promise.withResolvers<void>();
    await page.route(/range=90d/, async (route) => {
      await isChosen.promise;
      await route.continue().catch(() => undefined); // The page has cancelled it.
    });
    await page.getByRole("link", { name: "90 days" }).click();
    await page.getByRole("link", { name: "Dollars" }).click();
    await page.waitForURL(/measure=dollars/);
    isChosen.resolve();
    expect(await page.getByRole("link", { name: "Dollars" }).getAttribute("aria-current")).toBe("true");
    await page.getByRole("link", { name: "Latency" }).click();
    await page.waitForURL(/measure=latency/);
    expect(page.url()).toContain("range=30d");
  });

  test("a statement shows every amount of a day on a phone, and on paper as a table without the navigation", async () => {
    const { token } = await organizationWithAMonth();
    const month = new Date().toISOString().slice(0, 7);
    const { page } = await openAt(`/billing/statements/${month}`, { width: 390 }, token);
    const cells = page.getByRole("group", { name: "Searches by day" }).locator("tbody tr").first().locator("td");
    const places = () => cells.evaluateAll((found) => found.map((cell) => cell.getBoundingClientRect().toJSON()));
    const onPhone = await places();
    expect(onPhone).toHaveLength(5);
    for (const { left, right } of onPhone) expect([left >= 0, right <= 390]).toEqual([true, true]);
    // The width of A4 at 96 dots an inch, without margins.
    await page.setViewportSize({ width: 718, height: 1_000 });
    await page.emulateMedia({ media: "print" });
    expect(new Set((await places()).map(({ top }) => top)).size).toBe(1);
    expect(await page.getByRole("navigation", { name: "Account" }).isVisible()).toBe(false);
    expect(await page.getByRole("link", { name: "Download CSV" }).isVisible()).toBe(false);
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

  test("without JavaScript the numbers of a day are shown too, and a person can sign out", async () => {
    const { page } = await openAt("/billing", { script: false }, (await organizationWithAMonth()).token);
    await page.locator(".day").nth(3).hover();
    expect(await page.locator(".summary").nth(3).isVisible()).toBe(true);
    expect(await page.getByText("Live").count()).toBe(0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  test("if the service is down the page says so, and it reloads by itself", async () => {
    const person = await openAt("/billing");
    await live(person);
    const { port } = service.redisServer;
    await service.redisServer.stop();
    await person.page.getByText("Updates paused").waitFor();
    await person.page.goto(`${url}/billing/payments`);
    await person.page.getByRole("heading", { name: "Back in a moment" }).waitFor();
    expect(await faultsOf(person, "the service is down")).toEqual([]);
    await service.restartRedis(port);
    await person.page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(person.page.url()).toBe(`${url}/billing/payments`);
  });

  test("in forced colours the current page and filter stay marked, and the dots keep their colours", async () => {
    const { token } = await service.organization();
    await service.search(token, { keyword: "coffee" });
    const { page } = await openAt("/billing/searches", {}, token);
    const dot = () =>
      page.evaluate('getComputedStyle(document.querySelector(".outcome.charged"), "::before").backgroundColor');
    const usual = await dot();
    await page.emulateMedia({ forcedColors: "active" });
    expect(await dot()).toBe(usual);
    const underlined = `[...document.querySelectorAll("nav a")]
      .filter((link) => getComputedStyle(link).textDecorationLine === "underline").map((link) => link.textContent)`;
    expect(await page.evaluate(underlined)).toEqual(["Searches", "All"]);
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
