import type { Request } from "express";
import type { AccountView } from "../frame/account-frame.ts";
import type { AccountReads } from "../frame/account-reads.ts";
import type { AccountRequest } from "../frame/account-handlers.ts";
import type { LiveSections } from "../frame/live-updates.ts";
import { html } from "../../pages/html.ts";
import { findForm } from "./find-form.ts";
import { historySection } from "./history-section.ts";
import { historyViewQuery, isFinding, readHistoryView } from "./history-view.ts";

/** GET /billing/searches: what each search was charged, or why it was not, and the credit that was added. */
export function writeSearches({ reads }: { reads: AccountReads }) {
  return async ({ request, caller }: AccountRequest): Promise<AccountView> => {
    const view = readHistoryView(request);
    const history = await reads.readHistory(caller.organizationId, view);
    const tokens = await reads.listTokens(caller.organizationId);
    return {
      path: "/billing/searches",
      title: "Searches",
      // What was found stays: to find it anew for each search that ends would cost more than the searches.
      live: isFinding(view) ? undefined : `/billing/searches/live?${historyViewQuery(view)}`,
      body: html`${findForm(view, tokens)}
${historySection(history)}`,
    };
  };
}

/** GET /billing/searches/live: the newest page as it changes. A person who reads an older page keeps it. */
export function liveSearches(reads: AccountReads, request: Request): LiveSections {
  const view = readHistoryView(request);
  return {
    ofCredit: () => [],
    ofLedger: async ({ caller }) => {
      if (view.before !== undefined || isFinding(view)) return [];
      return [{ id: "history", html: historySection(await reads.readHistory(caller.organizationId, view)) }];
    },
  };
}
