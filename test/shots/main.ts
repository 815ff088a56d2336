/** `npm run shots`: writes screenshots of every page of the account in its states, to look at. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import type { Browser } from "playwright-core";
import { accountPages } from "../../api/billing/frame/navigation.ts";
import { newId } from "../../shared/ids.ts";
import { startPostgres } from "../../shared/local/postgres.ts";
import { startRedis } from "../../shared/local/redis.ts";
import { openBrowser } from "../harness/clients/browser.ts";
import { forgetSignIns, PageVisitor } from "../harness/clients/page-visitor.ts";
import { aMonth, backdateLedger } from "../harness/fixtures/backdate-ledger.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";

const widthsDefault = "320,768,1440,1920";
const height = 900;

interface Options {
  out: string;
  widths: string;
  only?: string;
}

/** A page in a state: who looks at it, and where. */
interface Shot {
  name: string;
  path: string;
  /** Absent for a person who is not signed in. */
  visitor?: PageVisitor;
}

async function signIn(service: Service, organization: Organization): Promise<PageVisitor> {
  const visitor = new PageVisitor(service);
  await forgetSignIns(service);
  await visitor.signIn(organization.token);
  return visitor;
}

/** An organization with a month of searches, another token with limits, and some searches of this minute. */
async function busy(service: Service): Promise<PageVisitor> {
  const organization = await service.organization({ creditMils: 0 });
  await backdateLedger(service.databaseUrl, organization.organizationId, aMonth(new Date()));
  for (const keyword of ["coffee beans berlin", "sandbox:error", "best running shoes 2026"])
    await service.search(organization.token, { keyword });
  const visitor = await signIn(service, organization);
  const form = { organization: organization.organizationId, id: newId("tok"), name: "crawler of the shop" };
  await visitor.post("/billing/tokens/create", { ...form, scope: "search", expires: "90", day: "5", month: "100" });
  return visitor;
}

async function shotsOf(service: Service): Promise<Shot[]> {
  const states = {
    new: await signIn(service, await service.organization()),
    empty: await signIn(service, await service.organization({ creditMils: 0 })),
    busy: await busy(service),
  };
  const pages = accountPages.map(({ path, label }) => ({ path, label: label.toLowerCase() }));
  return [
    { name: "sign-in", path: "/billing" },
    ...Object.entries(states).flatMap(([state, visitor]) =>
      pages.map(({ path, label }) => ({ name: `${label}-${state}`, path, visitor })),
    ),
    { name: "dollars-90-days", path: "/billing?measure=dollars&range=90d", visitor: states.busy },
    { name: "not-found", path: "/billing/nothing", visitor: states.busy },
    { name: "reference", path: "/docs" },
  ];
}

async function take(browser: Browser, url: string, shot: Shot, look: { width: number; dark: boolean; out: string }) {
  const { width, dark, out } = look;
  const colorScheme = dark ? "dark" : "light";
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const cookie = shot.visitor?.cookie;
  if (cookie !== undefined) await context.setExtraHTTPHeaders({ cookie });
  const page = await context.newPage();
  await page.goto(`${url}${shot.path}`);
  await page.screenshot({ path: join(out, `${shot.name}-${width}-${colorScheme}.png`), fullPage: true });
  await context.close();
}

async function main({ out, widths, only }: Options): Promise<void> {
  await mkdir(out, { recursive: true });
  const postgres = await startPostgres();
  const servers = { database: await freshDatabaseIn(postgres.url), redis: await startRedis() };
  const service = await Service.start({ servers });
  try {
    const shots = (await shotsOf(service)).filter(({ name }) => only === undefined || name.includes(only));
    const browser = await openBrowser();
    for (const shot of shots)
      for (const width of widths.split(",").map(Number))
        for (const dark of [false, true]) await take(browser, service.apis[0]?.url ?? "", shot, { width, dark, out });
    await browser.close();
    process.stdout.write(`${shots.length} pages are in ${out}\n`);
  } finally {
    await service.stop();
    await postgres.stop();
  }
}

const program = new Command("npm run shots --")
  .description("Writes screenshots of every page of the account, in each state, light and dark, as PNG files.")
  .requiredOption("--out <folder>", "where to write them; it is created")
  .option("--widths <list>", "comma list of widths in pixels", widthsDefault)
  .option("--only <text>", "only the pages whose name contains it, such as overview or busy")
  .showHelpAfterError();
await main(program.parse().opts<Options>());
