import { type DayFigures, readDays } from "../../../shared/credits/days.ts";
import { type HistoryEntry, readHistory } from "../../../shared/credits/history.ts";
import type { RateWindow } from "../../../shared/credits/admit.ts";
import type { CreditState } from "../../../shared/credits/holds.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { type Caller, showOrganization } from "../../../shared/organizations/organizations.ts";
import { readThreshold } from "../../../shared/webhooks/low-balance.ts";
import type { Clock } from "../../../shared/redis/clock.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { unavailable } from "../../errors.ts";
import type { ReadUsage } from "../../read-usage.ts";
import type { HistoryView } from "../searches/history-view.ts";

const daysShown = 30;
const latestShown = 6;
const entriesPerPage = 25;

/** An organization's credit at one moment. The numbers agree with each other, and with REST and MCP. */
export interface Credit {
  caller: Caller;
  availableMils: number;
  state: CreditState;
  window: RateWindow;
  windowEndsAt: Date;
}

/** What an organization did of late. It is read completely before any of it is written. */
export interface Activity {
  days: DayFigures[];
  latest: HistoryEntry[];
  /** The balance below which the payer is notified; null for none. */
  thresholdMils: number | null;
}

/** One page of the history. */
export interface History {
  view: HistoryView;
  entries: HistoryEntry[];
  hasOlder: boolean;
}

export interface AccountReads {
  /**
   * Reads the organization's credit and its rate window, of which it takes nothing.
   * @throws {CallerError} `unavailable` without Redis, which alone knows the holds.
   */
  readCredit: (caller: Caller) => Promise<Credit>;
  /** Reads the organization's name from Postgres. @throws {CallerError} `unavailable`. */
  readName: (caller: Caller) => Promise<string>;
  /** Reads the last days and the latest entries from Postgres. @throws {CallerError} `unavailable`. */
  readActivity: (organizationId: string) => Promise<Activity>;
  /** Reads one page of the history from Postgres. @throws {CallerError} `unavailable`. */
  readHistory: (organizationId: string, view: HistoryView) => Promise<History>;
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
    readName: ({ organizationId }) =>
      orPostgresUnavailable(
        showOrganization(database, organizationId).then((organization) => organization?.name ?? organizationId),
      ),
    readActivity: async (organizationId) => {
      const latest = readHistory(database, organizationId, { filter: "all", before: undefined, limit: latestShown });
      const threshold = readThreshold(database, organizationId);
      const read = Promise.all([readDays(database, organizationId, daysShown), latest, threshold]);
      const [days, entries, thresholdMils] = await orPostgresUnavailable(read);
      return { days, latest: entries, thresholdMils };
    },
    readHistory: async (organizationId, view) => {
      // One more than the page shows, to know whether there are older entries.
      const page = { ...view, limit: entriesPerPage + 1 };
      const entries = await orPostgresUnavailable(readHistory(database, organizationId, page));
      return { view, entries: entries.slice(0, entriesPerPage), hasOlder: entries.length > entriesPerPage };
    },
  };
}
