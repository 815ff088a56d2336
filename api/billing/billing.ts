import { readFileSync } from "node:fs";
import type { Request, Response } from "express";
import type { Redis } from "ioredis";
import type { Context } from "../../shared/process/context.ts";
import type { Config } from "../../shared/config.ts";
import { databaseOf, openDatabase } from "../../shared/database/pool.ts";
import { CallerError } from "../../shared/errors.ts";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import { Semaphore } from "../../shared/concurrency/semaphore.ts";
import { isHttps } from "../http/security-headers.ts";
import type { FindByTokenHash } from "../identify.ts";
import { creditReader, type ReadUsage } from "../read-usage.ts";
import type { AutoTopups } from "../topups/auto-topups.ts";
import type { Topups } from "../topups/topups.ts";
import { brand } from "../brand/brand.ts";
import { cancelPlayground, type PlaygroundParts, runPlayground, showPlayground } from "../playground/playground.ts";
import { SessionSearches } from "../playground/session-searches.ts";
import { handleSuggestions } from "../playground/suggestions.ts";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { PageSender } from "../pages/page-sender.ts";
import { AccountHandlers, type FormRequest, type Handler } from "./frame/account-handlers.ts";
import { handleLiveUpdates, LiveStreams } from "./frame/live-updates.ts";
import { sendErrorPage } from "./frame/send-error-page.ts";
import { type AddCredit, beginTopUp } from "./payments/add-credit.ts";
import { liveOverview, writeOverview } from "./overview/overview.ts";
import {
  handleCardForm,
  handleOffForm,
  handleRemoveCardForm,
  handleTermsForm,
  type PaymentParts,
  sendToReceipt,
  writePayments,
} from "./payments/payments.ts";
import { sendStatementCsv, writeStatement } from "./payments/statement.ts";
import { writeComparison } from "./searches/compare.ts";
import { sendCsvExport } from "./searches/export-csv.ts";
import { writeSearch } from "./searches/search.ts";
import { liveSearches, writeSearches } from "./searches/searches.ts";
import { Sessions } from "./session/sessions.ts";
import { handleSignIn, handleSignOut } from "./session/sign-in.ts";
import {
  handleKeptAnswersForm,
  handleLimitsForm,
  handleLowBalanceForm,
  handleRemoveForm,
  handleReplayForm,
  handleSecretForm,
  handleTestForm,
  handleWebhookForm,
  type SettingsParts,
  writeSettings,
} from "./settings/settings.ts";
import { handleRevokeForm, handleRotateForm, handleTokenLimitsForm, writeToken } from "./tokens/token.ts";
import { handleCreateForm, type TokenParts, writeTokens } from "./tokens/tokens.ts";

// The pages have their own connections, so that no search waits while they read long ledgers. All streams together use one
// connection at a time, and so do all exports: one is left for views.
const databaseSizeMax = 3;

interface AccountRoute {
  method: "GET" | "POST";
  path: string;
  handle: Handler;
  /** Where a GET of a form's path redirects to. */
  page?: string;
}

/** The account pages: their routes and files, and how they show an error. */
export interface Billing {
  routes: readonly AccountRoute[];
  files: readonly StaticFile[];
  sendError: (request: Request, response: Response, error: CallerError) => void;
}

interface BillingParts extends Pick<Context, "config" | "log" | "metrics" | "shutdown" | "redis" | "clock"> {
  findByTokenHash: FindByTokenHash;
  readUsage: ReadUsage;
  /** Undefined if the operator has set up no payments. */
  topups: Topups | undefined;
  autoTopups: AutoTopups | undefined;
  /** What runs the searches of the playground. */
  playground: PlaygroundParts;
  /** Aborted when the process shuts down: open streams end then. */
  draining: AbortSignal;
}

export function openBilling(parts: BillingParts): Billing {
  const { config, log, metrics, shutdown, redis, clock, findByTokenHash, readUsage, topups, autoTopups, draining } =
    parts;
  const database = openDatabase({
    ...databaseOf(config),
    name: "api-billing",
    sizeMax: databaseSizeMax,
    log,
    shutdown,
  });
  const style = readFile("/billing/account.css", "text/css", "frame/account.css");
  const script = readFile("/billing/account.js", "text/javascript", "frame/account.js");
  const answerScript = readFile("/billing/answer.js", "text/javascript", "searches/answer.js");
  const playgroundScript = readFile("/playground/playground.js", "text/javascript", "../playground/playground.js");
  const files = { icon: brand.mark, font: brand.font, styles: [brand.style, style], scripts: [script] };
  const pages = new PageSender({ files, checkoutOrigin: topups?.checkoutOrigin });
  const isSecure = (request: Request) => isHttps(request, config.PUBLIC_URL);
  const sessions = new Sessions({ redis, clock, findByTokenHash, isSecure });
  const accountParts = { sessions, redis, pages, database };
  const account = new AccountHandlers(accountParts);
  const ofAnswers = (...others: StaticFile[]) => {
    const scripts = [script, answerScript, ...others];
    const answerPages = new PageSender({ files: { ...files, scripts }, checkoutOrigin: undefined });
    return new AccountHandlers({ ...accountParts, pages: answerPages });
  };
  const readCredit = creditReader(readUsage, clock);
  const live = { sessions, redis, readCredit, pages, streams: new LiveStreams(metrics), draining };
  const signIn = { sessions, pages, redis, database, metrics };
  const suggestions = handleSuggestions({ sessions, redis });
  const sessionSearches = new SessionSearches({ redis, clock, database, log });
  const announce = () =>
    publishIdentityChange(redis).catch((error: unknown) => log.warn({ err: error }, "a change was not announced"));
  const searches = { database, longReads: new Semaphore() };
  const exports = { pages, database, reads: new Semaphore(), downloading: new Set<string>() };
  const overview = { ...searches, readCredit, searchLogDays: config.SEARCH_LOG_DAYS };
  const addCredit = addCreditOf(topups, config);
  return {
    routes: [
      get("/billing", account.page(writeOverview, { ...overview, addCredit })),
      get("/billing/live", handleLiveUpdates(live, liveOverview(overview))),
      get("/billing/searches", account.page(writeSearches, searches, "searches")),
      get("/billing/searches/live", handleLiveUpdates(live, liveSearches(searches))),
      get("/billing/searches/:requestId", ofAnswers().page(writeSearch, searches, "searches")),
      get("/billing/searches/:requestId/compare", account.page(writeComparison, searches, "searches")),
      get("/billing/searches.csv", account.download(sendCsvExport, exports)),
      ...playgroundRoutes({ ...parts.playground, account: ofAnswers(playgroundScript), sessionSearches }),
      get("/playground/suggestions/location", suggestions.location),
      get("/playground/suggestions/language", suggestions.language),
      ...tokenRoutes({ account, database, hasDoors: config.COMPAT_DOORS.length > 0, announce, redis, sessions }),
      ...settingsRoutes({ account, database, config, announce }),
      ...paymentRoutes({ account, database, addCredit, pages }, topups && autoTopups && { topups, autoTopups }),
      post("/billing/sign-in", handleSignIn(signIn)),
      post("/billing/sign-out", handleSignOut({ sessions, database, log })),
    ],
    files: [brand.mark, brand.font, brand.style, style, script, answerScript, playgroundScript],
    sendError: (request, response, error) => sendErrorPage(pages, request, response, error),
  };
}

const get = (path: string, handle: Handler): AccountRoute => ({ method: "GET", path, handle });
const post = (path: string, handle: Handler): AccountRoute => ({ method: "POST", path, handle });

const playgroundRoutes = (parts: Parameters<typeof runPlayground>[0]): AccountRoute[] => [
  get("/playground", parts.account.page(showPlayground, parts, "searches")),
  { ...post("/playground/search", parts.account.form(runPlayground, parts, "searches")), page: "/playground" },
  post("/playground/cancel", parts.account.form(cancelPlayground, parts, "searches")),
];

const tokenRoutes = (parts: TokenParts & { redis: Redis; sessions: Sessions }): AccountRoute[] => [
  get("/billing/tokens", parts.account.page(writeTokens, parts)),
  post("/billing/tokens/create", parts.account.form(handleCreateForm, parts)),
  post("/billing/tokens/limits", parts.account.form(handleTokenLimitsForm, parts)),
  post("/billing/tokens/rotate", parts.account.form(handleRotateForm, parts)),
  post("/billing/tokens/revoke", parts.account.form(handleRevokeForm, parts)),
  get("/billing/tokens/:tokenId", parts.account.page(writeToken, parts)),
];

const settingsRoutes = (parts: SettingsParts): AccountRoute[] => [
  get("/billing/settings", parts.account.page(writeSettings, parts)),
  post("/billing/settings/limits", parts.account.form(handleLimitsForm, parts)),
  post("/billing/settings/kept-answers", parts.account.form(handleKeptAnswersForm, parts)),
  post("/billing/settings/low-balance", parts.account.form(handleLowBalanceForm, parts)),
  post("/billing/settings/webhook", parts.account.form(handleWebhookForm, parts)),
  post("/billing/settings/webhook/secret", parts.account.form(handleSecretForm, parts)),
  post("/billing/settings/webhook/remove", parts.account.form(handleRemoveForm, parts)),
  post("/billing/settings/webhook/test", parts.account.form(handleTestForm, parts)),
  post("/billing/settings/webhook/replay", parts.account.form(handleReplayForm, parts)),
];

/** What payments need besides. */
interface StripeParts {
  topups: Topups;
  autoTopups: AutoTopups;
}

/** @param stripe undefined if the operator has set up no payments. */
function paymentRoutes(parts: PaymentParts & { pages: PageSender }, stripe: StripeParts | undefined): AccountRoute[] {
  const { account } = parts;
  const form = (handle: (payment: PaymentParts & StripeParts, asked: FormRequest) => Promise<void>) =>
    stripe ? account.form(handle, { ...parts, ...stripe }) : noPayments;
  return [
    get("/billing/payments", account.page(writePayments, parts)),
    get("/billing/statements/:month", account.page(writeStatement, parts)),
    get("/billing/statements.csv", account.download(sendStatementCsv, parts)),
    get("/billing/receipts/:grant", stripe ? account.download(sendToReceipt, { ...parts, ...stripe }) : noPayments),
    post("/billing/topup", form(beginTopUp)),
    post("/billing/auto-topup", form(handleTermsForm)),
    post("/billing/auto-topup/off", form(handleOffForm)),
    post("/billing/auto-topup/card", form(handleCardForm)),
    post("/billing/auto-topup/card/remove", form(handleRemoveCardForm)),
  ];
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
  // TOPUP_URL is this page by default, and a page must not link to itself.
  return TOPUP_URL === `${PUBLIC_URL}/billing` ? "ask_operator" : { url: TOPUP_URL };
}

/** Lines that begin with a comment. */
const comments = /^ *(?:\/\/[^\n]*|\/\*.*?\*\/)\n*/gms;

/** A file for browsers, without comments. They cache it permanently, so the next page of an account requests none. */
const readFile = (path: string, type: string, file: string): StaticFile => {
  const text = readFileSync(new URL(file, import.meta.url), "utf8").replaceAll(comments, "");
  return staticFile(path, `${type}; charset=utf-8`, Buffer.from(text));
};
