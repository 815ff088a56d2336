import { readFileSync } from "node:fs";
import type { Request, Response } from "express";
import type { Redis } from "ioredis";
import type { Config } from "../../shared/config.ts";
import { openDatabase } from "../../shared/database/pool.ts";
import { CallerError } from "../../shared/errors.ts";
import type { Log } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import type { Shutdown } from "../../shared/concurrency/shutdown.ts";
import type { Clock } from "../../shared/redis/clock.ts";
import { isHttps } from "../http/security-headers.ts";
import type { IdentifyByHash } from "../identify.ts";
import type { ReadUsage } from "../read-usage.ts";
import type { AutoTopups } from "../topups/auto-topups.ts";
import type { Topups } from "../topups/topups.ts";
import { readBrand } from "../brand/brand.ts";
import { type PlaygroundParts, runPlayground, showPlayground } from "../playground/playground.ts";
import { SessionSearches } from "../playground/session-searches.ts";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { PageSender } from "../pages/page-sender.ts";
import { openAccountReads } from "./frame/account-reads.ts";
import { AccountHandlers, type Handler } from "./frame/account-handlers.ts";
import { handleLiveUpdates, LiveStreams } from "./frame/live-updates.ts";
import { sendErrorPage, topUpPath } from "./frame/send-error-page.ts";
import { type AddCredit, beginTopUp } from "./payments/add-credit.ts";
import { liveOverview, writeOverview } from "./overview/overview.ts";
import { autoTopupForms, sendToReceipt, writePayments } from "./payments/payments.ts";
import { sendStatementCsv, writeStatement } from "./payments/statement.ts";
import { sendCsvExport } from "./searches/export-csv.ts";
import { writeSearch } from "./searches/search-page.ts";
import { liveSearches, writeSearches } from "./searches/searches.ts";
import { PageWindow } from "./session/counted-window.ts";
import { Sessions } from "./session/sessions.ts";
import { handleSignIn, handleSignOut, SignInAttempts } from "./session/sign-in.ts";
import {
  handleLimitsForm,
  handleLowBalanceForm,
  handleRemoveForm,
  handleReplayForm,
  handleSecretForm,
  handleTestForm,
  handleWebhookForm,
  writeSettings,
} from "./settings/settings.ts";
import { handleRevokeForm, handleTokenLimitsForm, writeToken } from "./tokens/token.ts";
import { handleCreateForm, writeTokens } from "./tokens/tokens.ts";

// The pages read long ledgers on connections of their own, so that no search waits for them. Streams take one at a time, and
// so do exports: one is left for views.
const databaseSizeMax = 3;

/** One route of the account pages. */
interface AccountRoute {
  method: "GET" | "POST";
  path: string;
  handle: Handler;
  /** Where a GET of a form's path leads. */
  page?: string;
}

/** The account pages: their routes, their files, and their form of an error. */
export interface Billing {
  routes: readonly AccountRoute[];
  files: readonly StaticFile[];
  sendError: (request: Request, response: Response, error: CallerError) => void;
}

export function openBilling(parts: {
  config: Pick<
    Config,
    "DATABASE_URL" | "DATABASE_POOLER" | "PUBLIC_URL" | "SEARCH_LOG_DAYS" | "TOPUP_URL" | "WEBHOOK_TARGETS"
  >;
  log: Log;
  metrics: Metrics;
  shutdown: Shutdown;
  redis: Redis;
  clock: Clock;
  identifyByHash: IdentifyByHash;
  readUsage: ReadUsage;
  /** Undefined if the operator has set up no payments. */
  topups: Topups | undefined;
  autoTopups: AutoTopups | undefined;
  /** What runs the searches of the playground. */
  playground: PlaygroundParts;
  /** Aborted when the process shuts down: open streams end then. */
  draining: AbortSignal;
}): Billing {
  const { config, log, metrics, shutdown, redis, clock, identifyByHash, readUsage, topups, autoTopups, draining } =
    parts;
  const publicUrl = config.PUBLIC_URL;
  const { DATABASE_URL: url, DATABASE_POOLER: pooler } = config;
  const isPooled = pooler === "transaction";
  const database = openDatabase({ url, name: "api-billing", isPooled, sizeMax: databaseSizeMax, log, shutdown });
  const brand = readBrand();
  const style = readFile("/billing/account.css", "text/css", "frame/account.css");
  const script = readFile("/billing/account.js", "text/javascript", "frame/account.js");
  const playgroundScript = readFile("/playground/playground.js", "text/javascript", "../playground/playground.js");
  const files = { icon: brand.mark, styles: [brand.style, style], scripts: [script] };
  const pages = new PageSender({ files, checkoutOrigin: topups?.checkoutOrigin });
  const isSecure = (request: Request) => isHttps(request, publicUrl);
  const sessions = new Sessions({ redis, clock, identifyByHash, isSecure });
  const attempts = new SignInAttempts(redis);
  const pageWindow = new PageWindow(redis);
  const reads = openAccountReads({ readUsage, clock, database, searchLogDays: config.SEARCH_LOG_DAYS });
  const accountParts = { sessions, pageWindow, pages, reads, brand, publicUrl };
  const account = new AccountHandlers(accountParts);
  const playgroundFiles = { ...files, scripts: [script, playgroundScript] };
  const playgroundPages = new PageSender({ files: playgroundFiles, checkoutOrigin: undefined });
  const playground = new AccountHandlers({ ...accountParts, pages: playgroundPages });
  const playgroundParts = {
    ...parts.playground,
    publicUrl,
    sessionSearches: new SessionSearches({ redis, clock, database, log }),
  };
  const live = { sessions, pageWindow, reads, pages, streams: new LiveStreams(metrics), draining };
  const addCredit = addCreditOf(topups, config);
  const get = (path: string, handle: Handler): AccountRoute => ({ method: "GET", path, handle });
  const post = (path: string, handle: Handler): AccountRoute => ({ method: "POST", path, handle });
  const announce = () =>
    publishIdentityChange(redis).catch((error: unknown) => log.warn({ err: error }, "a change was not announced"));
  const tokens = { account, database, announce };
  const settings = { account, database, config, announce };
  const payments = { account, database, addCredit };
  return {
    routes: [
      get("/billing", account.page(writeOverview({ reads, publicUrl, addCredit }))),
      get("/billing/live", handleLiveUpdates(live, liveOverview(reads, publicUrl))),
      get("/billing/searches", account.page(writeSearches({ reads }))),
      get(
        "/billing/searches/live",
        handleLiveUpdates(live, (request) => liveSearches(reads, request)),
      ),
      get("/billing/searches/:requestId", account.page(writeSearch({ reads }))),
      get("/billing/searches.csv", account.download(sendCsvExport({ pages, database }))),
      get("/playground", playground.page(showPlayground(playgroundParts))),
      {
        ...post("/playground/search", playground.form(runPlayground(playground, playgroundParts))),
        page: "/playground",
      },
      get("/billing/tokens", account.page(writeTokens(tokens))),
      post("/billing/tokens/create", account.form(handleCreateForm({ ...tokens, redis }))),
      post("/billing/tokens/limits", account.form(handleTokenLimitsForm(tokens))),
      post("/billing/tokens/revoke", account.form(handleRevokeForm({ ...tokens, sessions }))),
      get("/billing/tokens/:tokenId", account.page(writeToken(tokens))),
      get("/billing/payments", account.page(writePayments(payments))),
      get("/billing/statements/:month", account.page(writeStatement({ database }))),
      get("/billing/statements.csv", account.download(sendStatementCsv({ pages, database }))),
      get("/billing/receipts/:grant", topups ? account.download(sendToReceipt({ database, topups })) : noPayments),
      get("/billing/settings", account.page(writeSettings(settings))),
      post("/billing/settings/limits", account.form(handleLimitsForm(settings))),
      post("/billing/settings/low-balance", account.form(handleLowBalanceForm(settings))),
      post("/billing/settings/webhook", account.form(handleWebhookForm(settings))),
      post("/billing/settings/webhook/secret", account.form(handleSecretForm(settings))),
      post("/billing/settings/webhook/remove", account.form(handleRemoveForm(settings))),
      post("/billing/settings/webhook/test", account.form(handleTestForm(settings))),
      post("/billing/settings/webhook/replay", account.form(handleReplayForm(settings))),
      post(
        "/billing/sign-in",
        handleSignIn({ sessions, attempts, pageWindow, pages, brand, database, metrics, publicUrl }),
      ),
      post("/billing/sign-out", handleSignOut({ sessions, database, log, publicUrl })),
      ...autoTopupForms({ ...payments, topups, autoTopups }).map(({ path, handle }) =>
        post(path, handle ? account.form(handle) : noPayments),
      ),
      post(topUpPath, topups ? account.form(beginTopUp({ topups })) : noPayments),
    ],
    files: [brand.mark, brand.style, style, script, playgroundScript],
    sendError: (request, response, error) => sendErrorPage({ pages, brand }, request, response, error),
  };
}

async function noPayments(): Promise<void> {
  throw new CallerError("not_found");
}

/** How credit can be added: by a payment, at an address that the operator set, or by asking the operator. */
function addCreditOf(
  topups: Topups | undefined,
  { PUBLIC_URL = "", TOPUP_URL }: Pick<Config, "PUBLIC_URL" | "TOPUP_URL">,
): AddCredit {
  if (topups) return { amountsMils: topups.amountsMils };
  // TOPUP_URL is this page by default. A link from the page to itself would lead nowhere.
  return TOPUP_URL === `${PUBLIC_URL}/billing` ? "ask_operator" : { url: TOPUP_URL };
}

/** A file for browsers, beside those of the brand. It is cached for ever, so the next page of an account asks for none. */
const readFile = (path: string, type: string, file: string): StaticFile =>
  staticFile(path, `${type}; charset=utf-8`, readFileSync(new URL(file, import.meta.url)));
