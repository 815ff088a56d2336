import { text } from "node:stream/consumers";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { issueToken } from "../../api/tokens/tokens.ts";
import { setKeptDays } from "../../shared/credits/kept-answers.ts";
import { freePort } from "../../local/ports.ts";
import { openBrowser, signInAt, visitor } from "../harness/clients/browser.ts";
import { withoutChromium } from "../harness/clients/chromium.ts";
import { type Hands, keyboard, mouse } from "../harness/clients/hands.ts";
import { keepSearch } from "../harness/fixtures/kept-search.ts";
import { requestIdAt } from "../harness/fixtures/request-ids.ts";
import { backdateLedger } from "../harness/fixtures/backdate-ledger.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";
import { operator } from "../harness/fixtures/operator.ts";

/**
 * What people log in for: each task begins on the overview and has a number of clicks that it may take. Enter in the field that has
 * the focus is none.
 */

// On a phone in the dark, on a tablet with a keyboard, and where no script runs.
const ways = [
  { way: mouse, look: { width: 390, dark: true } },
  { way: keyboard, look: { width: 768 } },
  { way: mouse, look: { script: false } },
];
const dayMs = 86_400_000;
const keyword = "coffee beans of the highest quality";
/** What was searched yesterday and today. */
const repeated = "garden pump";
/** What was searched with a depth beyond the limit. */
const refused = "sourdough starter";

type Task = {
  title: string;
  clicks: number;
  /** @param at.colleague opens an address as another person of the organization, who signs in there. */
  run: (at: { page: Page; hands: Hands; colleague: (address: string) => Promise<Page> }) => Promise<void>;
};

const link = (page: Page, name: string | RegExp) => page.getByRole("link", { name }).first();
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const see = (page: Page, words: string | RegExp) => page.getByText(words).first().waitFor();

/** The first of last month, in UTC. */
const lastMonth = () => new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - 1));

const tasks: Task[] = [];
const task = (title: string, clicks: number, run: Task["run"]) => void tasks.push({ title, clicks, run });

task("sees when the credit ends", 0, async ({ page }) =>
  see(page, /Lasts until about \d+ \w+ \d{4}, ≈ [\d,]+ searches/),
);

task("sees what a token spent", 2, async ({ page, hands }) => {
  await hands.press(link(page, "Tokens"));
  await hands.press(link(page, "Unnamed"));
  await see(page, "for 2 charged searches");
});

task("sees how long the searches of a token took", 3, async ({ page, hands }) => {
  await hands.choose(page.getByLabel("Usage of"), "leaked");
  await hands.press(button(page, "Show"));
  await page.waitForURL(/token=tok_/);
  await hands.press(link(page, "Latency"));
  await page.waitForURL(/measure=latency/);
  await see(page, "No searches in this period");
});

task("finds a search by its keyword", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Searches"));
  await hands.fill(page.getByLabel("Keyword or request ID"), "Highest");
  await page.keyboard.press("Enter");
  await page.waitForURL(/find=Highest/);
  await hands.press(link(page, keyword));
  await page.getByRole("heading", { name: keyword }).waitFor();
});

task("finds the searches of yesterday", 2, async ({ page, hands }) => {
  await hands.press(link(page, "Searches"));
  await hands.press(link(page, "yesterday"));
  await page.waitForURL(/from=.*to=/);
  await link(page, repeated).waitFor();
});

task("finds a search by the day on which it was sent", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Searches"));
  await hands.date(page.getByLabel("To", { exact: true }), new Date(Date.now() - dayMs));
  await hands.press(button(page, "Find"));
  await page.waitForURL(/to=20/);
  await link(page, repeated).waitFor();
});

task("compares a search with yesterday's answer", 2, async ({ page, hands }) => {
  await hands.press(link(page, repeated));
  await hands.press(link(page, /^Compare with the answer of /));
  await page.getByRole("heading", { name: /\d+ (new|gone|moved|unchanged)/ }).waitFor();
});

task("sees why a search was not charged", 2, async ({ page, hands }) => {
  await hands.press(link(page, "Searches"));
  await hands.press(link(page, "Not charged"));
  await page.waitForURL(/refunded/);
  await see(page, "No answer arrived before the deadline");
});

task("finds out why a request was refused", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Searches"));
  await hands.press(link(page, "Refused"));
  await page.waitForURL(/refused/);
  await hands.press(link(page, refused));
  await page.getByRole("heading", { name: "Refused 400" }).waitFor();
  await see(page, "What to do:");
});

task("shares an answer", 2, async ({ page, hands, colleague }) => {
  await hands.press(link(page, repeated));
  await page.getByRole("heading", { name: "Answer", exact: true }).waitFor();
  await hands.press(page.locator("#address"));
  await page.waitForURL(/req_/);
  const other = await colleague(page.url());
  await other.getByRole("heading", { name: repeated }).waitFor();
  await other.locator("#answer .page a").first().waitFor();
});

task("makes a token", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Tokens"));
  await hands.fill(page.getByLabel("Name"), "crawler");
  await hands.press(button(page, "Create token"));
  await page.getByRole("heading", { name: "Copy the token now" }).waitFor();
});

task("revokes a leaked token", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Tokens"));
  await hands.press(link(page, "Revoke “leaked”"));
  await hands.press(button(page, "Revoke permanently"));
  await see(page, "Token revoked");
});

task("rotates a token", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Tokens"));
  await hands.press(link(page, "leaked"));
  await hands.press(button(page, "Rotate"));
  await page.getByRole("heading", { name: "Copy the token now" }).waitFor();
  await see(page, "It replaces the old one, which ends on");
});

task("limits what is spent in a day", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Settings"));
  await hands.fill(page.getByLabel("Daily limit"), "2.50");
  await hands.press(button(page, "Save limits"));
  await see(page, "Limits saved");
});

task("is warned of a low balance", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Settings"));
  await hands.fill(page.getByLabel("Threshold in US dollars"), "900");
  await page.keyboard.press("Enter");
  await see(page, "Threshold saved");
  await hands.press(link(page, "Overview"));
  await see(page, "is below your threshold of");
});

task("downloads the statement of last month", 2, async ({ page, hands }) => {
  const month = lastMonth().toLocaleDateString("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
  await hands.press(link(page, "Payments"));
  const csv = page.getByLabel(`CSV of ${month}`);
  const [download] = await Promise.all([page.waitForEvent("download"), hands.press(csv)]);
  expect(await text(await download.createReadStream())).toContain("closing");
});

task("tries a search in Munich on a phone", 3, async ({ page, hands }) => {
  await hands.press(link(page, "Playground"));
  await page.locator("#keyword:focus").waitFor();
  await page.keyboard.type("bakery");
  await hands.choose(page.getByLabel("Device"), "Mobile");
  await hands.fill(page.getByLabel("Country or place"), "Munich, Germany");
  await page.keyboard.press("Enter");
  await page.locator("#answer").waitFor();
});

task("adds credit", 1, async ({ page, hands }) => {
  await page.route("https://checkout.stripe.com/**", (route) =>
    route.fulfill({ contentType: "text/html", body: "<h1>Pay here</h1>" }),
  );
  await hands.press(button(page, "Continue to payment"));
  await page.getByRole("heading", { name: "Pay here" }).waitFor();
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let stripe: StripeStub;
  let service: Service;
  let browser: Browser;
  let url: string;
  beforeAll(async () => {
    const port = String(await freePort());
    url = `http://127.0.0.1:${port}`;
    stripe = await StripeStub.start();
    service = await Service.start({
      environment: { ...stripe.environment, API_PORT: port, PUBLIC_URL: url, KEPT_ANSWERS_DAYS: "30" },
    });
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await stripe?.close();
  });

  /** An organization with a past, a search that was charged and one that was not, and a token that leaked. */
  async function customer(): Promise<Organization> {
    const organization = await service.organization({ creditMils: 0 });
    const { organizationId, token, tokenId } = organization;
    const requestId = requestIdAt(Date.now() - dayMs);
    await backdateLedger(service.databaseUrl, organizationId, [
      { at: new Date(lastMonth().getTime() + dayMs), kind: "grant", mils: 50_000 },
      { at: new Date(lastMonth().getTime() + 2 * dayMs), kind: "charge", mils: 5 },
      ...[3, 2].map((days) => ({ at: new Date(Date.now() - days * dayMs), kind: "charge", mils: 500 }) as const),
      { at: new Date(Date.now() - dayMs), kind: "charge", mils: 500, requestId },
      { at: new Date(), kind: "refund", reason: "engine_timeout" },
    ]);
    await asOwner(service.databaseUrl, (owner) =>
      owner.query("update organizations set created_at = $2 where id = $1", [organizationId, lastMonth()]),
    );
    await issueToken(service.database, organizationId, { name: "leaked" });
    await setKeptDays(service.database, { actor: operator, organizationId }, 30);
    const yesterday = { fields: { keyword: repeated }, hosts: ["a.example", "b.example"] };
    await keepSearch(service.database, { organizationId, tokenId, requestId }, yesterday);
    await service.search(token, { keyword: refused, depth: 1_000 });
    await service.search(token, { keyword: repeated }, { key: "today" });
    const { body } = await service.search(token, { keyword });
    const logged = `select from search_log where request_id = $1
      union all select from refused_searches where organization_id = $2`;
    await service.until(async () => {
      const { rowCount } = await service.database.query(logged, [body.requestId, organizationId]);
      return rowCount === 2;
    });
    return organization;
  }

  async function signIn(page: Page, { token }: Organization): Promise<void> {
    await signInAt(page, service, `${url}/billing`, token);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  }

  test.each(tasks)("a person $title in $clicks clicks, by keyboard, and without a script", async ({ clicks, run }) => {
    for (const { way, look } of ways) {
      const organization = await customer();
      const { context, page } = await visitor(browser, [url], look);
      await signIn(page, organization);
      const hands = way(page);
      const other = await visitor(browser, [url], look);
      const colleague = async (address: string) => {
        await signInAt(other.page, service, address, organization.token);
        return other.page;
      };
      await run({ page, hands, colleague });
      expect({ way: way.name, steps: hands.steps }).toEqual({ way: way.name, steps: clicks });
      expect(await page.locator("html").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
      await Promise.all([context.close(), other.context.close()]);
    }
  });
});
