import type { Page } from "playwright-core";
import { accountPages } from "../../api/billing/frame/account-frame.ts";
import { freePort } from "../../local/ports.ts";
import type { Service } from "../harness/processes/service.ts";
import type { StripeStub } from "../harness/stubs/stripe-stub.ts";
import { type Account, busyAccount, emptyAccount, lowAccount, newAccount, payingAccount } from "./accounts.ts";
import { automaticTopups } from "./automatic-topups.ts";
import type { PageState } from "./open-state.ts";

/** Every page in its states. The last ones are of an API with payments, the others of one without. */
export async function openStates(service: Service, stripe: StripeStub): Promise<PageState[]> {
  const url = service.apis[0]?.url ?? "";
  const paying = await startPaying(service, stripe);
  const busy = await busyAccount(service);
  const at = (path: string) => `${url}${path}`;
  const [empty, low] = [await emptyAccount(service), await lowAccount(service)];
  const payingApi = service.apis.length - 1;
  const payer = await payingAccount(service, stripe, payingApi);
  const of = ({ visitor }: Account, name: string, path: string) => ({ name, url: at(path), visitor });
  return [
    ...signedOut(at),
    ...everyPage("new", await newAccount(service), at),
    ...everyPage("empty", empty, at),
    ...everyPage("busy", busy, at),
    ...ofSearches(busy, at),
    ...ofTokens(busy, at),
    ...ofPlayground(busy, empty, at),
    of(busy, "overview-dollars-90-days", "/billing?measure=dollars&range=90d"),
    { ...of(busy, "overview-24-hours", "/billing?range=24h"), act: openTable },
    of(busy, "overview-latency", "/billing?measure=latency"),
    of(busy, "overview-latency-of-a-token", `/billing?measure=latency&range=7d&token=${busy.tokenIds.own}`),
    of(busy, "overview-latency-of-no-search", `/billing?measure=latency&range=24h&token=${busy.tokenIds.limited}`),
    of(busy, "searches-credited-back", "/billing/searches?show=reversed"),
    of(low, "overview-low-balance", "/billing"),
    of(low, "settings-saved", "/billing/settings"),
    { ...of(low, "settings-refused", "/billing/settings"), act: refusedThreshold },
    of(busy, "statement", `/billing/statements/${new Date().toISOString().slice(0, 7)}`),
    { ...of(busy, "not-found", "/billing/nothing"), status: 404 },
    { name: "overview-payments", url: `${paying}/billing?topup=paid`, visitor: payer.visitor },
    { name: "payments-receipts", url: `${paying}/billing/payments`, visitor: payer.visitor },
    ...(await automaticTopups(service, stripe, { api: payingApi, url: `${paying}/billing/payments` })),
  ];
}

/** Starts an API with payments. @returns its address. */
async function startPaying(service: Service, stripe: StripeStub): Promise<string> {
  const port = String(await freePort());
  const PUBLIC_URL = `http://127.0.0.1:${port}`;
  await service.startApi({ ...stripe.environment, API_PORT: port, PUBLIC_URL });
  return PUBLIC_URL;
}

type At = (path: string) => string;

const signedOut = (at: At): PageState[] => [
  { name: "landing", url: at("/") },
  {
    name: "reference",
    url: at("/docs"),
    act: (page) => page.getByText("What is charged").first().waitFor(),
    isScreen: true,
  },
  { name: "reference-operation", url: at("/docs#tag/search"), act: operation, isScreen: true },
  { name: "sign-in", url: at("/billing") },
  { name: "sign-in-refused", url: at("/billing"), act: refusedSignIn },
];

const everyPage = (state: string, { visitor }: Account, at: At): PageState[] =>
  accountPages.map(({ path, label }) => ({ name: `${label.toLowerCase()}-${state}`, url: at(path), visitor }));

const ofSearches = ({ visitor, requestIds }: Account, at: At): PageState[] => [
  { name: "searches-found", url: at("/billing/searches?find=coffee"), visitor },
  { name: "searches-nothing-found", url: at("/billing/searches?find=nothing+of+the+kind"), visitor },
  { name: "search", url: at(`/billing/searches/${requestIds.charged}`), visitor },
  { name: "search-compared", url: at(`/billing/searches/${requestIds.charged}/compare`), visitor },
  { name: "searches-of-days", url: at("/billing/searches?find=coffee&from=2026-01-01&to=2026-01-31"), visitor },
  { name: "search-not-charged", url: at(`/billing/searches/${requestIds.failed}`), visitor },
  { name: "search-refused", url: at(`/billing/searches/${requestIds.refused}`), visitor },
  { name: "searches-refused", url: at("/billing/searches?show=refused"), visitor },
];

const ofTokens = ({ visitor, tokenIds }: Account, at: At): PageState[] => [
  { name: "token", url: at(`/billing/tokens/${tokenIds.limited}`), visitor },
  { name: "token-own", url: at(`/billing/tokens/${tokenIds.own}`), visitor },
  { name: "token-made", url: at("/billing/tokens"), visitor, act: (page) => makeToken(page, "5") },
  { name: "token-refused", url: at("/billing/tokens"), visitor, act: (page) => makeToken(page, "much") },
];

const ofPlayground = (busy: Account, { visitor }: Account, at: At): PageState[] => [
  { name: "playground-answer", url: at("/playground"), visitor: busy.visitor, act: search },
  { name: "playground-error", url: at("/playground"), visitor, act: search },
];

const operation = (page: Page) => page.getByText("--retry 3 http").first().waitFor();

async function openTable(page: Page): Promise<void> {
  await page.locator(".day").nth(7).hover();
  await page.getByText("Show the numbers as a table").click();
}

async function refusedSignIn(page: Page): Promise<void> {
  await page.getByLabel("Token").fill("smk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
}

async function refusedThreshold(page: Page): Promise<void> {
  await page.getByLabel("Threshold in US dollars").fill("many");
  await page.getByRole("button", { name: "Save threshold" }).click();
  await page.locator(".problem").waitFor();
}

async function makeToken(page: Page, dollars: string): Promise<void> {
  await page.getByLabel("Name").fill("crawler");
  await page.getByLabel("Daily limit").fill(dollars);
  await page.getByRole("button", { name: "Create token" }).click();
  await page.locator("#token, .problem").first().waitFor();
}

async function search(page: Page): Promise<void> {
  await page.getByLabel("Keyword").fill("coffee beans berlin");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.locator("#answer").waitFor();
}
