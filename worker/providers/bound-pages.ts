import { answerBytesMax } from "../../shared/search-answer.ts";
import { charactersOf } from "./build-element.ts";
import type { Page } from "./provider.ts";

/**
 * Leaves out the elements that cannot be in the answer, because those before them fill it. So the pages of a search never
 * take much more memory than its answer. Pages that are still missing only add to what comes before.
 * @param pages in page order; a page that has not arrived is a hole or absent.
 */
export function boundPages(pages: Page[]): void {
  let characters = 0;
  for (const page of pages) {
    if (page === undefined) continue;
    // A character has at least one byte.
    const firstBeyond = page.elements.findIndex((element) => {
      characters += charactersOf(element);
      return characters > answerBytesMax;
    });
    if (firstBeyond < 0) continue;
    page.elements.length = firstBeyond;
    page.truncated = true;
  }
}
