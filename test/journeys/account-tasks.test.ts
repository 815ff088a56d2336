import { text } from "node:stream/consumers";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { issueToken } from "../../api/tokens/tokens.ts";
import { freePort } from "../../local/ports.ts";
import { openBrowser, signInAt, visitor } from "../harness/clients/browser.ts";
import { withoutChromium } from "../harness/clients/chromium.ts";
import { type Hands, keyboard, mouse } from "../harness/clients/hands.ts";
import { backdateLedger } from "../harness/fixtures/backdate-ledger.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";

/** What people log in for: each task begins on the overview and has a number of clicks that it may take. */

const dayMs = 86_400_000;
const keyword = "coffee beans of the highest quality";

type Task = {
  title: string;
  clicks: number;
  run: (at: { page: Page; hands: Hands }) => Promise<void>;
};

const link = (page: Page, name: string | RegExp) => page.getByRole("link", { name }).first();
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const see = (page: Page, words: string | RegExp) => page.getByText(words).first().waitFor();

/** The first of last month, in UTC. */
const lastMonth = () => new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - 1));

const tasks: Task[] = [
  {
    title: "sees when the credit ends",
    clicks: 0,
    run: async ({ page }) => see(page, /Lasts until about \d+ \w+ \d{4}, ≈ [\d,]+ searches/),
  },
  {
    title: "sees what a token spent",
    clicks: 2,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Tokens"));
      await hands.press(link(page, "Unnamed"));
      await see(page, "for 1 charged search");
    },
  },
  {
    title: "sees how long the searches of a token took",
    clicks: 3,
    run: async ({ page, hands }) => {
      await hands.choose(page.getByLabel("Usage of"), "leaked");
      await hands.press(button(page, "Show"));
      await page.waitForURL(/token=tok_/);
      await hands.press(link(page, "Latency"));
      await page.waitForURL(/measure=latency/);
      await see(page, "No searches in this period");
    },
  },
  {
    title: "finds a search by its keyword",
    clicks: 4,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Searches"));
      await hands.fill(page.getByLabel("Keyword or request ID"), "Highest");
      await hands.press(button(page, "Find"));
      await page.waitForURL(/find=Highest/);
      await hands.press(link(page, keyword));
      await page.getByRole("heading", { name: keyword }).waitFor();
    },
  },
  {
    title: "sees why a search was not charged",
    clicks: 2,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Searches"));
      await hands.press(link(page, "Not charged"));
      await page.waitForURL(/refunded/);
      await see(page, "No answer arrived before the deadline");
    },
  },
  {
    title: "makes a token",
    clicks: 3,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Tokens"));
      await hands.fill(page.getByLabel("Name"), "crawler");
      await hands.press(button(page, "Create token"));
      await page.getByRole("heading", { name: "Copy the token now" }).waitFor();
    },
  },
  {
    title: "revokes a leaked token",
    clicks: 4,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Tokens"));
      await hands.press(link(page, "leaked"));
      await hands.press(page.getByText("Revoke “leaked”"));
      await hands.press(button(page, "Revoke permanently"));
      await see(page, "The token is revoked");
    },
  },
  {
    title: "rotates a token",
    clicks: 3,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Tokens"));
      await hands.press(link(page, "leaked"));
      await hands.press(button(page, "Rotate"));
      await page.getByRole("heading", { name: "Copy the token now" }).waitFor();
      await see(page, "It takes the place of the old one, which ends on");
    },
  },
  {
    title: "limits what is spent in a day",
    clicks: 3,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Settings"));
      await hands.fill(page.getByLabel("At most a day"), "2.50");
      await hands.press(button(page, "Save limits"));
      await see(page, "The limits are saved");
    },
  },
  {
    title: "is warned of a low balance",
    clicks: 4,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Settings"));
      await hands.fill(page.getByLabel("Threshold in US dollars"), "900");
      await hands.press(page.getByRole("region", { name: "Low balance" }).getByRole("button", { name: "Save" }));
      await see(page, "The threshold is saved");
      await hands.press(link(page, "Overview"));
      await see(page, "is below your threshold of");
    },
  },
  {
    title: "downloads the statement of last month",
    clicks: 2,
    run: async ({ page, hands }) => {
      const month = lastMonth().toLocaleDateString("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
      await hands.press(link(page, "Payments"));
      const csv = page.getByLabel(`CSV of ${month}`);
      const [download] = await Promise.all([page.waitForEvent("download"), hands.press(csv)]);
      expect(await text(await download.createReadStream())).toContain("closing");
    },
  },
  {
    title: "tries a search in Munich on a phone",
    clicks: 5,
    run: async ({ page, hands }) => {
      await hands.press(link(page, "Playground"));
      await hands.fill(page.getByLabel("Keyword"), "bakery");
      await hands.fill(page.getByLabel("Country or place"), "Munich, Germany");
      await hands.choose(page.getByLabel("Device"), "Mobile");
      await hands.press(button(page, "Search"));
      await page.locator("#answer").waitFor();
    },
  },
  {
    title: "adds credit",
    clicks: 1,
    run: async ({ page, hands }) => {
      await page.route("https://checkout.stripe.com/**", (route) =>
        route.fulfill({ contentType: "text/html", body: "<h1>Pay here</h1>" }),
      );
      await hands.press(button(page, "Continue to payment"));
      await page.getByRole("heading", { name: "Pay here" }).waitFor();
    },
  },
];

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let stripe: StripeStub;
  let service: Service;
  let browser: Browser;
  let url: string;
  beforeAll(async () => {
    const port = String(await freePort());
    url = `http://127.0.0.1:${port}`;
    stripe = await StripeStub.start();
    service = await Service.start({ environment: { ...stripe.environment, API_PORT: port, PUBLIC_URL: url } });
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
    const { organizationId, token } = organization;
    await backdateLedger(service.databaseUrl, organizationId, [
      { at: new Date(lastMonth().getTime() + dayMs), kind: "grant", mils: 50_000 },
      { at: new Date(lastMonth().getTime() + 2 * dayMs), kind: "charge", mils: 5 },
      ...[3, 2, 1].map((days) => ({ at: new Date(Date.now() - days * dayMs), kind: "charge", mils: 500 }) as const),
      { at: new Date(), kind: "refund", reason: "engine_timeout" },
    ]);
    await asOwner(service.databaseUrl, (owner) =>
      owner.query("update organizations set created_at = $2 where id = $1", [organizationId, lastMonth()]),
    );
    await issueToken(service.database, organizationId, { name: "leaked" });
    const { body } = await service.search(token, { keyword });
    await service.until(async () => {
      const { rows } = await service.database.query("select from search_log where request_id = $1", [body.requestId]);
      return rows.length === 1;
    });
    return organization;
  }

  async function signIn(page: Page, { token }: Organization): Promise<void> {
    await signInAt(page, service, `${url}/billing`, token);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  }

  test.each(tasks)("a person $title in $clicks clicks, and by keyboard alone", async ({ clicks, run }) => {
    for (const way of [mouse, keyboard]) {
      const organization = await customer();
      const { context, page } = await visitor(browser, [url]);
      await signIn(page, organization);
      const hands = way(page);
      await run({ page, hands });
      expect({ way: way.name, steps: hands.steps }).toEqual({ way: way.name, steps: clicks });
      await context.close();
    }
  });
});
