import { html, type Html } from "../../pages/html.ts";
import { keywordCharactersMax } from "../../../shared/query/query.ts";
import type { LoggedSearch } from "../../../shared/search-log/read-search-log.ts";
import type { AccountToken } from "../../tokens/account-tokens.ts";
import { type HistoryView, historyViewQuery, isNarrowed } from "./history-view.ts";

/** A token to filter searches by. */
export type FindableToken = Pick<AccountToken, "tokenId" | "name" | "last4" | "revokedAt">;

// A longer list is of no use. The page of each token links to its searches.
const tokensMax = 100;

/** The form that finds searches. It is outside the live section, so that no input is lost. */
export function findForm(view: HistoryView, tokens: readonly FindableToken[]): Html {
  const { filter, find = "", tokenId, from = "", to = "" } = view;
  return html`<form class="find" role="search" action="/billing/searches">
${filter !== "all" && html`<input type="hidden" name="show" value="${filter}">`}
<label>Keyword or request ID <input type="search" name="find" value="${find}" maxlength="${keywordCharactersMax}" autocomplete="off"></label>
<label>Token <select name="token"><option value="">Any</option>${tokenOptions(tokens, tokenId)}</select></label>
<label>From <input type="date" name="from" value="${from}"></label>
<label>To <input type="date" name="to" value="${to}"></label>
<button>Find</button>${isNarrowed(view) && html` <a class="button" href="/billing/searches">Show all</a>`}
<p class="aside">Days are UTC: ${usualDays(new Date()).map((days) => daysLink(view, days))}</p>
</form>`;
}

const dayMs = 86_400_000;

/** Days that people often look at. */
function usualDays(now: Date) {
  const ago = (days: number) => new Date(now.getTime() - days * dayMs).toISOString().slice(0, 10);
  return [
    { label: "today", from: ago(0), to: ago(0) },
    { label: "yesterday", from: ago(1), to: ago(1) },
    { label: "last 7 days", from: ago(6), to: ago(0) },
  ];
}

function daysLink(view: HistoryView, { label, from, to }: ReturnType<typeof usualDays>[number]): Html {
  const current = from === view.from && to === view.to && html` aria-current="true"`;
  const address = `/billing/searches?${historyViewQuery({ ...view, from, to, before: undefined })}`;
  return html`<a href="${address}"${current}>${label}</a> `;
}

/** Options for the newest tokens and the chosen one. */
export function tokenOptions(tokens: readonly FindableToken[], chosen: string | undefined): Html {
  const listed = tokens.toReversed().filter((token, at) => at < tokensMax || token.tokenId === chosen);
  return html`${listed.map((token) => option(token, chosen))}`;
}

function option(token: FindableToken, chosen: string | undefined): Html {
  const { tokenId } = token;
  const revoked = token.revokedAt ? ", revoked" : "";
  return html`<option value="${tokenId}"${tokenId === chosen && html` selected`}>${tokenLabel(token)}${revoked}</option>`;
}

/** The name of a token, else its last characters, else its id (once its organization is erased). */
export const tokenLabel = ({ name, last4, tokenId }: LoggedSearch["token"]): string =>
  name ?? (last4 ? `smk_…${last4}` : tokenId);
