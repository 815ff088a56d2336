import { distance } from "fastest-levenshtein";

export const suggestionsMax = 3;
/** A longer word gets no suggestions: comparing costs time for every letter, and no name is longer. */
const lettersComparedMax = 30;
/** With more typos it is a different word. The limit also keeps a refusal cheap, which no rate limit does. */
const typosMax = 3;
/** A word with at least this many letters matches every name that has a word beginning with it (`Korea`, `Congo`). */
const lettersContainedMin = 4;

/**
 * Up to three names that a folded word may be a misspelling of, closest first. They have the same first letter, which is seldom
 * mistyped, and differ by one typo in `lettersPerTypo` letters at most. `names` maps folded to displayed names.
 */
export function closestNames(word: string, names: ReadonlyMap<string, string>, lettersPerTypo = 4): string[] {
  if (word === "" || word.length > lettersComparedMax) return [];
  const typosAllowed = Math.min(typosMax, Math.floor(word.length / lettersPerTypo));
  const distances = new Map<string, number>();
  for (const [folded, name] of names) {
    const isContained = word.length >= lettersContainedMin && ` ${folded}`.includes(` ${word}`);
    // The distance is at least the difference in length. This check skips most names.
    const isComparable = word[0] === folded[0] && Math.abs(word.length - folded.length) <= typosAllowed;
    if (!isContained && !isComparable) continue;
    const typos = isContained ? 1 : distance(word, folded);
    if (typos <= typosAllowed) distances.set(name, Math.min(typos, distances.get(name) ?? typos));
  }
  return [...distances]
    .toSorted(([, a], [, b]) => a - b)
    .slice(0, suggestionsMax)
    .map(([name]) => name);
}

/** ` Did you mean "A", "B" or "C"?`, to be appended to a sentence; "" without names. */
export function didYouMean(names: readonly string[]): string {
  return names.length === 0 ? "" : ` Did you mean ${alternatives(names)}?`;
}

/** `"A", "B" or "C"`; "" without names. */
export function alternatives(names: readonly string[]): string {
  // Created for the first refusal: it takes ICU's data of lists, which are slow to load.
  listOfAlternatives ??= new Intl.ListFormat("en-GB", { type: "disjunction" });
  return listOfAlternatives.format(names.map((name) => `"${name}"`));
}

let listOfAlternatives: Intl.ListFormat | undefined;
