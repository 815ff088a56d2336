import { type DayFigures, readDays, readLedgerDays, withoutPlace } from "../../ledger/days.ts";
import { readHistory } from "../../ledger/history.ts";
import { Turns } from "../../../shared/concurrency/turns.ts";
import type { RateWindow } from "../../../shared/credits/admit.ts";
import type { CreditState } from "../../../shared/credits/holds.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { type Caller, showOrganization } from "../../../shared/organizations/organizations.ts";
import { listTokens } from "../../tokens/tokens.ts";
import { readThreshold } from "../../../shared/webhooks/low-balance.ts";
import type { Clock } from "../../../shared/redis/clock.ts";
import { isTopupOf } from "../../ledger/ledger-pages.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { unavailable } from "../../errors.ts";
import type { ReadUsage } from "../../read-usage.ts";
import type { SearchEntry } from "../../ledger/find-searches.ts";
import { type Chart, isReadOnce, periodsOf, readChart, type UsageView } from "../overview/usage-view.ts";
import { type Entries, type HistoryView, isFinding, readEntries, withSearches } from "../searches/history-view.ts";
import { utcDayOf } from "../searches/history-table.ts";
import { readSearch, type ShownSearch } from "../searches/read-search.ts";

/** Today and the week before it, from which the pace is known. */
const paceDays = 8;
const entriesPerPage = 25;
/** Entries that the overview shows. */
export const latestShown = 6;

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
  chart: Chart;
  /** The last eight days, with today. */
  week: DayFigures[];
  latest: SearchEntry[];
  /** The balance below which the payer is notified; null for none. */
  thresholdMils: number | null;
}

/** One page of the history. */
export interface History extends Entries {
  view: HistoryView;
  /** The whole of each day that has an entry on the page, by day such as `2026-03-01`; none where something is to be found. */
  days: Map<string, DayFigures>;
}

export interface AccountReads {
  /**
   * Reads the organization's credit and its rate window, of which it takes nothing.
   * @throws {CallerError} `unavailable` without Redis, which alone knows the holds.
   */
  readCredit: (caller: Caller) => Promise<Credit>;
  /** Reads the organization's name from Postgres. @throws {CallerError} `unavailable`. */
  readName: (caller: Caller) => Promise<string>;
  /** Reads the chart of a view, the last days and the latest entries from Postgres. @throws {CallerError} `unavailable`. */
  readActivity: (organizationId: string, view: UsageView) => Promise<Activity>;
  /** Whether a payment was credited to an organization. @throws {CallerError} `unavailable`. */
  isCredited: (organizationId: string, grantId: string) => Promise<boolean>;
  /** Reads the tokens of an organization from Postgres, the oldest first. @throws {CallerError} `unavailable`. */
  listTokens: (organizationId: string) => ReturnType<typeof listTokens>;
  /** Reads one search from Postgres; undefined if the organization has none with this id that ended. @throws {CallerError} `unavailable`. */
  readSearch: (organizationId: string, requestId: string) => Promise<ShownSearch | undefined>;
  /** Reads one page of the history from Postgres. @throws {CallerError} `unavailable`. */
  readHistory: (organizationId: string, view: HistoryView) => Promise<History>;
}

/** Reads the days of a page's entries, one after the other: there is one, or few, unless the organization searches seldom. */
async function readDaysOf(
  database: Database,
  organizationId: string,
  { entries }: Entries,
): Promise<Map<string, DayFigures>> {
  const days = new Map<string, DayFigures>();
  for (const day of new Set(entries.map(utcDayOf))) {
    const [figures] = await readLedgerDays(database, organizationId, { from: day, days: 1 });
    if (figures) days.set(day, figures);
  }
  return days;
}

export function openAccountReads(parts: {
  readUsage: ReadUsage;
  clock: Clock;
  database: Database;
  /** The days of the search log; 0 for none. */
  searchLogDays: number;
}): AccountReads {
  const { readUsage, clock, database, searchLogDays: keptDays } = parts;
  // What is found among 10,000 rows, or counted from 100,000, takes longer than a page. Those who only turn pages do not wait for it.
  const finds = new Turns();
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
    isCredited: (organizationId, grantId) => orPostgresUnavailable(isTopupOf(database, organizationId, grantId)),
    readActivity: async (organizationId, view) => {
      const { unit, length } = periodsOf(view, new Date());
      const latest = readHistory(database, organizationId, { filter: "all", before: undefined, limit: latestShown });
      const threshold = readThreshold(database, organizationId);
      const searched = latest.then(({ entries }) => withSearches(database, organizationId, entries));
      const days = readLedgerDays(database, organizationId, { days: length, unit });
      const draw = async () => readChart(database, organizationId, { view, days: await days, keptDays });
      const chart = isReadOnce(view) ? finds.run(draw) : draw();
      const hasWeek = unit === "day" && length >= paceDays;
      const week = hasWeek ? days.then((read) => read.map(withoutPlace)) : readDays(database, organizationId, paceDays);
      const read = await orPostgresUnavailable(Promise.all([chart, week, searched, threshold]));
      return { chart: read[0], week: read[1].slice(-paceDays), latest: read[2], thresholdMils: read[3] };
    },
    listTokens: (organizationId) => orPostgresUnavailable(listTokens(database, organizationId)),
    readSearch: (organizationId, requestId) =>
      finds.run(() => orPostgresUnavailable(readSearch(database, organizationId, requestId))),
    readHistory: async (organizationId, view) => {
      const read = () => orPostgresUnavailable(readEntries(database, organizationId, view, entriesPerPage));
      if (isFinding(view)) return { view, days: new Map(), ...(await finds.run(read)) };
      const page = await read();
      return { view, days: await orPostgresUnavailable(readDaysOf(database, organizationId, page)), ...page };
    },
  };
}
