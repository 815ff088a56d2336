import { pagesOf } from "../../../shared/query/depth.ts";
import { boundPages } from "../bound-pages.ts";
import type { Failure, Page, PageOutcome } from "../provider.ts";
import { type Attempt, cancelAttempt, cancellationFailure } from "./attempt.ts";

/**
 * Fetches all pages that the depth of the query needs. The first page is fetched alone, because it says whether there are
 * more; the others are fetched concurrently. When one fails, the attempt is cancelled: the caller ordered all of them.
 * @param fetchPage page numbers begin at 1.
 * @param onFirstPage called once the first page has arrived, unless the attempt was cancelled before.
 * @returns the pages in order, or the first failure.
 */
export async function fetchPages(
  fetchPage: (pageNumber: number) => Promise<PageOutcome>,
  attempt: Attempt,
  onFirstPage: () => void,
): Promise<Page[] | Failure> {
  const first = await fetchPage(1);
  if (attempt.cancellation.signal.aborted) return cancellationFailure(attempt);
  if ("failure" in first) return first;
  attempt.hasFirstPage = true;
  onFirstPage();
  const pageCount = first.hasMore ? pagesOf(attempt.query.depth) : 1;
  const pages: Page[] = [first];
  boundPages(pages);
  let failure: Failure | undefined;
  const fetchInto = async (index: number) => {
    const page = await fetchPage(index + 1);
    if (!("failure" in page)) {
      pages[index] = page;
      boundPages(pages);
      return;
    }
    failure ??= page;
    // An abandoned attempt lets the calls that were sent end: aborted ones may be billed all the same.
    if (!attempt.abandoned?.aborted) cancelAttempt(attempt, "dropped");
  };
  await Promise.all(Array.from({ length: pageCount - 1 }, (_, offset) => fetchInto(offset + 1)));
  return failure ?? pages;
}
