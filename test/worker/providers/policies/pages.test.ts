import { expect, test, vi } from "vitest";
import type { Attempt } from "../../../../worker/providers/policies/attempt.ts";
import { cancelAttempt } from "../../../../worker/providers/policies/attempt.ts";
import { fetchPages } from "../../../../worker/providers/policies/provider-client.ts";
import type { PageOutcome } from "../../../../worker/providers/provider.ts";
import { attemptFor, held, page, pageTitled, titlesOf } from "./fixtures.ts";

const endless = (pageNumber: number) => pageTitled(`page-${pageNumber}`, { hasMore: true });

/** Fetches from a provider that answers with `fetchPage`, and lists the requested pages. */
async function fetchFrom(fetchPage: (pageNumber: number) => Promise<PageOutcome> | PageOutcome, attempt: Attempt) {
  const requested: number[] = [];
  const onFirstPage = vi.fn<() => void>();
  const outcome = await fetchPages(
    async (pageNumber) => {
      requested.push(pageNumber);
      return fetchPage(pageNumber);
    },
    attempt,
    onFirstPage,
  );
  return { outcome: "failure" in outcome ? outcome : titlesOf(outcome), requested, onFirstPage };
}

test.each([
  [1, [1]],
  [10, [1]],
  [11, [1, 2]],
  [35, [1, 2, 3, 4]],
])("a depth of %d takes the pages %j, in order", async (depth, numbers) => {
  const { outcome, requested, onFirstPage } = await fetchFrom(endless, attemptFor({ depth }));
  expect({ outcome, requested }).toEqual({ outcome: numbers.map((each) => `page-${each}`), requested: numbers });
  expect(onFirstPage).toHaveBeenCalledOnce();
});

test("no further page is fetched when the first one says that there is none", async () => {
  const { outcome, requested } = await fetchFrom(() => pageTitled("all"), attemptFor({ depth: 100 }));
  expect({ outcome, requested }).toEqual({ outcome: ["all"], requested: [1] });
});

test("the further pages are fetched at once, and their order does not depend on which comes first", async () => {
  const second = held<PageOutcome>();
  const third = async () => {
    second.end(endless(2));
    return endless(3);
  };
  const byNumber = (pageNumber: number) => [endless(1), second.call(), third()][pageNumber - 1] ?? page();
  const { outcome } = await fetchFrom(byNumber, attemptFor({ depth: 30 }));
  expect(outcome).toEqual(["page-1", "page-2", "page-3"]);
});

test("a first page that fails is the failure of the attempt", async () => {
  const attempt = attemptFor({ depth: 30 });
  const { outcome, requested, onFirstPage } = await fetchFrom(() => ({ failure: "account_refused" }), attempt);
  expect({ outcome, requested }).toEqual({ outcome: { failure: "account_refused" }, requested: [1] });
  expect(onFirstPage).not.toHaveBeenCalled();
  expect(attempt.hasFirstPage).toBe(false);
});

test("one further page that fails is the failure of the attempt, and the other pages are dropped", async () => {
  const attempt = attemptFor({ depth: 40 });
  const { signal } = attempt.cancellation;
  const untilCancelled = () =>
    new Promise<PageOutcome>((resolve) => {
      signal.addEventListener("abort", () => resolve(signal.reason));
    });
  const byNumber = (pageNumber: number) =>
    pageNumber === 1 ? endless(1) : pageNumber === 3 ? { failure: "blocked" as const } : untilCancelled();
  const { outcome } = await fetchFrom(byNumber, attempt);
  expect(outcome).toEqual({ failure: "blocked" });
  expect(signal.reason).toEqual({ failure: "dropped" });
});

test("a first page that comes after the cancellation does not count", async () => {
  const attempt = attemptFor({ depth: 30 });
  const { outcome, requested, onFirstPage } = await fetchFrom(() => {
    cancelAttempt(attempt, "lost_hedge");
    return endless(1);
  }, attempt);
  expect({ outcome, requested }).toEqual({ outcome: { failure: "lost_hedge" }, requested: [1] });
  expect(onFirstPage).not.toHaveBeenCalled();
});
