import { type DayFigures, readDays } from "../../../shared/credits/days.ts";
import { type HistoryEntry, readHistory } from "../../../shared/credits/history.ts";
import type { RateWindow } from "../../../shared/credits/admit.ts";
import type { CreditState } from "../../../shared/credits/holds.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { type Caller, showOrganization } from "../../../shared/organizations/organizations.ts";
import type { Clock } from "../../../shared/redis/clock.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { unavailable } from "../../errors.ts";
import type { ReadUsage } from "../../read-usage.ts";
import type { HistoryView } from "./history-view.ts";

const daysShown = 30;
const entriesPerPage = 25;

/** An organization's credit at one moment. The numbers agree with each other, and with REST and MCP. */
export interface Credit {
  caller: Caller;
  availableMils: number;
  state: CreditState;
  window: RateWindow;
  windowEndsAt: Date;
}

/** One page of the history. */
export interface History {
  view: HistoryView;
  entries: HistoryEntry[];
  hasOlder: boolean;
}

/** Everything that the billing page shows. It is read completely before any of it is written. */
export interface Account {
  name: string;
  credit: Credit;
  days: DayFigures[];
  history: History;
}

export interface AccountReads {
  /**
   * Reads the organization's credit and its rate window, of which it takes nothing.
   * @throws {CallerError} `unavailable` without Redis, which alone knows the holds.
   */
  readCredit: (caller: Caller) => Promise<Credit>;
  /** Reads the organization's name from Postgres. @throws {CallerError} `unavailable`. */
  readName: (caller: Caller) => Promise<string>;
  /** Reads the rest of the account from Postgres. @throws {CallerError} `unavailable`. */
  readAccount: (credit: Credit, view: HistoryView) => Promise<Account>;
}

export function openAccountReads(parts: { readUsage: ReadUsage; clock: Clock; database: Database }): AccountReads {
  const { readUsage, clock, database } = parts;
  return {
    readCredit: async (caller) => {
      const { creditBalanceMils, window, creditState: state } = await readUsage(caller, true);
      if (!window || !state) throw unavailable("redis_unreachable");
      // Rounded to whole seconds, so that two reads in one window show the same end.
      const endsAtMs = Math.round((clock.nowMs() + window.leftMs) / 1_000) * 1_000;
      return { caller, availableMils: creditBalanceMils, state, window, windowEndsAt: new Date(endsAtMs) };
    },
    readName: (caller) => orPostgresUnavailable(readName(database, caller)),
    readAccount: async (credit, view) => {
      const { organizationId } = credit.caller;
      const [name, days, history] = await orPostgresUnavailable(
        Promise.all([
          readName(database, credit.caller),
          readDays(database, organizationId, daysShown),
          readHistoryPage(database, organizationId, view),
        ]),
      );
      return { name, credit, days, history };
    },
  };
}

async function readName(database: Database, { organizationId }: Caller): Promise<string> {
  return (await showOrganization(database, organizationId))?.name ?? organizationId;
}

async function readHistoryPage(database: Database, organizationId: string, view: HistoryView): Promise<History> {
  // One more than the page shows, to know whether there are older entries.
  const entries = await readHistory(database, organizationId, { ...view, limit: entriesPerPage + 1 });
  return { view, entries: entries.slice(0, entriesPerPage), hasOlder: entries.length > entriesPerPage };
}
