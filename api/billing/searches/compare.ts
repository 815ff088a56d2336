import { CallerError } from "../../../shared/errors.ts";
import { requestId as requestIdSchema, timeOfId } from "../../../shared/ids.ts";
import { pageKey } from "../../../shared/results.ts";
import { count, momentOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { PageRequest } from "../frame/account-handlers.ts";
import { onlyTokenOf } from "../session/sessions.ts";
import { readAnswer, type ShownAnswer } from "./answers.ts";
import { searchAddress } from "./history.ts";
import { link, type ShownElement } from "./answer-view.ts";
import { readSearch } from "./search.ts";
import type { SearchesParts } from "./searches.ts";

/**
 * GET /billing/searches/:requestId/compare: what has changed since the previous answer to the same query.
 * @throws {CallerError} `not_found` unless both searches may be seen.
 */
export async function writeComparison(
  { database, longReads }: SearchesParts,
  { request, caller }: PageRequest,
): Promise<AccountView> {
  const read = requestIdSchema.safeParse(request.params["requestId"]);
  if (!read.success) throw new CallerError("not_found");
  const { organizationId } = caller;
  const reading = async () => {
    const shown = await readSearch(database, { organizationId, only: onlyTokenOf(caller) }, read.data);
    const before = shown?.previous && (await readAnswer(database, organizationId, shown.previous));
    return { ...shown, before };
  };
  const { entry, answer, previous, before } = await longReads.run(reading, organizationId);
  if (!entry || !answer) throw new CallerError("not_found");
  return {
    path: "/billing/searches",
    title: entry.search?.query.keyword ?? "Search",
    above: { path: searchAddress(read.data), label: "This search" },
    body: html`<section class="panel" aria-labelledby="changes-title">
${
  previous && before
    ? comparison({ answer, requestId: read.data }, { answer: before, requestId: previous.requestId })
    : html`<h2 id="changes-title">Nothing to compare</h2><p>There is no earlier answer to this query, or it is no longer kept.</p>`
}
</section>`,
  };
}

interface Compared {
  answer: ShownAnswer;
  requestId: string;
}

function comparison(now: Compared, before: Compared): Html {
  if (now.answer.kind !== "kept" || before.answer.kind !== "kept")
    return html`<h2 id="changes-title">Nothing to compare</h2><p>One of the two answers is no longer kept, or is too large for this page.</p>`;
  const changes = changesOf(now.answer.results, before.answer.results);
  const sums = Object.entries(Object.groupBy(changes, ({ change }) => (typeof change === "number" ? "moved" : change)));
  return html`<h2 id="changes-title">${sums.map(([change, of], at) => `${at > 0 ? ", " : ""}${count(of.length)} ${change}`)}</h2>
<p class="aside">${searchLink("This search", now)} compared with ${searchLink("the earlier one", before)}</p>
<table class="changes">
<thead><tr><th scope="col">Rank</th><th scope="col">Before</th><th scope="col">Change</th><th scope="col">Element</th></tr></thead>
<tbody>${changes.map(row)}</tbody>
</table>`;
}

const searchLink = (which: string, { requestId }: Compared) =>
  html`<a href="${searchAddress(requestId)}">${which}</a> of ${momentOf(timeOfId(requestId))}`;

function row({ element: { type, title, url }, rank, rankBefore, change }: Change): Html {
  const kind = typeof change === "number" ? (change > 0 ? "up" : "down") : change;
  const words = typeof change === "number" ? `${kind} ${count(Math.abs(change))}` : change;
  return html`<tr class="${kind}"><td>${rank ?? "–"}</td><td>${rankBefore ?? "–"}</td><td><span>${words}</span></td><td>${link(url, title || url)} ${type !== undefined && html`<span class="aside">${type.replaceAll("_", " ")}</span>`}</td></tr>
`;
}

/** An element of either answer. `change` is how many ranks it rose, below 0 if it fell. */
interface Change {
  element: ShownElement;
  rank?: number;
  rankBefore?: number;
  change: "new" | "gone" | "unchanged" | number;
}

/**
 * Compares two answers to the same query: the elements of the newer one in their order, then those that are gone. An element is the
 * same if it has the same type and page, or without an address the same title. A compact answer has no ranks, so the places
 * of its results count.
 */
export function changesOf(now: readonly ShownElement[], before: readonly ShownElement[]): Change[] {
  const left = Map.groupBy(
    before.map((element, at) => ({ element, rank: rankOf(element, at) })),
    ({ element }) => nameOf(element),
  );
  const changes = now.map((element, at): Change => {
    const rank = rankOf(element, at);
    const old = left.get(nameOf(element))?.shift();
    if (!old) return { element, rank, change: "new" };
    return { element, rank, rankBefore: old.rank, change: old.rank - rank || "unchanged" };
  });
  const gone = [...left.values()].flat().toSorted((one, other) => one.rank - other.rank);
  return [...changes, ...gone.map(({ element, rank }): Change => ({ element, rankBefore: rank, change: "gone" }))];
}

const rankOf = ({ rank }: ShownElement, at: number) => rank ?? at + 1;
const nameOf = ({ type, url, title }: ShownElement) => `${type ?? ""} ${pageKey(url) || title}`;
