import type { Request, Response } from "express";
import type { Redis } from "ioredis";
import type { Config } from "../../shared/config.ts";
import { openDatabase } from "../../shared/database/pool.ts";
import type { CallerError } from "../../shared/errors.ts";
import type { Log } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import type { Shutdown } from "../../shared/process/shutdown.ts";
import type { Clock } from "../../shared/redis/clock.ts";
import { isHttps } from "../http/security-headers.ts";
import type { IdentifyByHash } from "../identify.ts";
import type { ReadUsage } from "../read-usage.ts";
import type { Topups } from "../topups/topups.ts";
import { type Assets, readAssets } from "./assets.ts";
import { handleBillingPage } from "./handlers/billing-page.ts";
import { handleCsvExport } from "./handlers/export-csv.ts";
import { handleLiveUpdates } from "./handlers/live-updates.ts";
import { handleSignIn, handleSignOut } from "./handlers/sign-in.ts";
import { handleTopUp } from "./handlers/top-up.ts";
import { LiveStreams } from "./live-streams.ts";
import { PageSender } from "./page-sender.ts";
import { openAccountReads } from "./reads/load-account.ts";
import { sendErrorPage } from "./send-error-page.ts";
import { PageWindow } from "./session/page-window.ts";
import { Sessions } from "./session/sessions.ts";
import { SignInAttempts } from "./session/sign-in-attempts.ts";
import type { AddCredit } from "./views/add-credit-section.ts";

// The pages read long ledgers on connections of their own, so that no search waits for them. Streams take one at a time, and
// so do exports: one is left for views.
const databaseSizeMax = 3;

type Handler = (request: Request, response: Response) => Promise<void>;

/** The billing page: a handler for each of its routes, its files, and its form of an error. */
export interface Billing {
  page: Handler;
  signIn: Handler;
  signOut: Handler;
  topUp: Handler;
  exportCsv: Handler;
  liveUpdates: Handler;
  assets: Assets;
  sendError: (request: Request, response: Response, error: CallerError) => void;
}

export function openBilling(parts: {
  config: Pick<Config, "DATABASE_URL" | "DATABASE_POOLER" | "PUBLIC_URL" | "TOPUP_URL">;
  log: Log;
  metrics: Metrics;
  shutdown: Shutdown;
  redis: Redis;
  clock: Clock;
  identifyByHash: IdentifyByHash;
  readUsage: ReadUsage;
  /** Undefined if the operator has set up no payments. */
  topups: Topups | undefined;
  /** Aborted when the process shuts down: open streams end then. */
  draining: AbortSignal;
}): Billing {
  const { config, log, metrics, shutdown, redis, clock, identifyByHash, readUsage, topups, draining } = parts;
  const publicUrl = config.PUBLIC_URL;
  const { DATABASE_URL: url, DATABASE_POOLER: pooler } = config;
  const isPooled = pooler === "transaction";
  const database = openDatabase({ url, name: "api-billing", isPooled, sizeMax: databaseSizeMax, log, shutdown });
  const assets = readAssets();
  const isSecure = (request: Request) => isHttps(request, publicUrl);
  const pages = new PageSender({ assets, checkoutOrigin: topups?.checkoutOrigin });
  const sessions = new Sessions({ redis, clock, identifyByHash, isSecure });
  const attempts = new SignInAttempts(redis);
  const pageWindow = new PageWindow(redis);
  const reads = openAccountReads({ readUsage, clock, database });
  const streams = new LiveStreams(metrics);
  return {
    page: handleBillingPage({ sessions, pageWindow, reads, pages, addCredit: addCreditOf(topups, config) }),
    signIn: handleSignIn({ sessions, attempts, pageWindow, pages, database, metrics, publicUrl }),
    signOut: handleSignOut({ sessions, database, log, publicUrl }),
    topUp: handleTopUp({ sessions, pageWindow, reads, topups, publicUrl }),
    exportCsv: handleCsvExport({ sessions, pageWindow, pages, database }),
    liveUpdates: handleLiveUpdates({ sessions, pageWindow, reads, pages, streams, draining }),
    assets,
    sendError: (request, response, error) => sendErrorPage(pages, request, response, error),
  };
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
