import type { CreditState, RateWindow } from "../../../shared/credits/holds.ts";
import { type DayFigures, readDays } from "../../../shared/credits/days.ts";
import { type HistoryEntry, type HistoryFilter, readHistory } from "../../../shared/credits/history.ts";
import { isTransient } from "../../../shared/database/failures.ts";
import { type Caller, showOrganization } from "../../../shared/organizations/organizations.ts";
import type { ApiContext } from "../../context.ts";
import { unavailable } from "../../errors.ts";

/** What the page shows, read before any of it is written. */

const daysShown = 30;
const entriesPerPage = 25;

/** Which part of the history somebody looks at: what is kept, and older than which version. */
export interface View {
  filter: HistoryFilter;
  before: number | undefined;
}

/** The organization's credit at one moment: the figures agree with each other, and with REST and MCP. */
export interface Credit {
  caller: Caller;
  availableMils: number;
  state: CreditState;
  window: RateWindow;
  windowEndsAt: Date;
}

export interface History {
  view: View;
  entries: HistoryEntry[];
  /** Whether there are older ones. */
  more: boolean;
}

export interface Account {
  name: string;
  credit: Credit;
  days: DayFigures[];
  history: History;
}

/**
 * For one request of the organization's window, or none where `tokenTaken`.
 * @throws {CallerError} `rate_limited`, or `unavailable`: without Redis nothing is known of holds.
 */
export async function readCredit(context: ApiContext, caller: Caller, tokenTaken = false): Promise<Credit> {
  const { creditBalanceMils, window, creditState } = await context.readUsage(caller, tokenTaken);
  if (!window || !creditState) throw unavailable("redis_unreachable");
  // Whole seconds, so that two looks at one window tell the same end.
  const endsAtMs = Math.round((context.clock.nowMs() + window.leftMs) / 1_000) * 1_000;
  return { caller, availableMils: creditBalanceMils, state: creditState, window, windowEndsAt: new Date(endsAtMs) };
}

/** The rest of the account, from Postgres. */
export async function readAccount(context: ApiContext, credit: Credit, view: View): Promise<Account> {
  const { organizationId } = credit.caller;
  const [organization, days, history] = await orUnavailable(
    Promise.all([
      showOrganization(context.database, organizationId),
      readDays(context.database, organizationId, daysShown),
      readHistoryPage(context, organizationId, view),
    ]),
  );
  return { name: organization?.name ?? organizationId, credit, days, history };
}

export async function readHistoryPage(context: ApiContext, organizationId: string, view: View): Promise<History> {
  // One more than is shown tells whether there are older ones.
  const read = await readHistory(context.database, organizationId, { ...view, limit: entriesPerPage + 1 });
  return { view, entries: read.slice(0, entriesPerPage), more: read.length > entriesPerPage };
}

/** @throws {CallerError} `unavailable` in place of an error that will pass. */
export async function orUnavailable<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw isTransient(error) ? unavailable("postgres_unreachable") : error;
  }
}
