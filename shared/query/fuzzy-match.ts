export const suggestionsMax = 3;
/** A longer word gets no suggestions: comparing two words costs the product of their lengths, and no name is longer. */
const lettersComparedMax = 30;
/** With more typos it is a different word. The limit also keeps a refusal cheap, which no rate limit does. */
const typosMax = 3;
const lettersPerTypo = 6;
/** With a wrong first letter, at most one typo is allowed: `Noland` may mean `Poland`, but `Xoyland` does not. */
const typosWithOtherInitialMax = 1;
/** A word with at least this many letters matches every name that contains it (`Korea`, `Congo`). */
const lettersContainedMin = 4;
/** Two rows of the table of distances, reused for every pair of words. */
const rows: [Uint8Array, Uint8Array] = [
  new Uint8Array(lettersComparedMax + typosMax + 1),
  new Uint8Array(lettersComparedMax + typosMax + 1),
];

/** Up to three names that a folded word may be a misspelling of, closest first. `names` maps folded to displayed names. */
export function closestNames(word: string, names: ReadonlyMap<string, string>): string[] {
  if (word === "" || word.length > lettersComparedMax) return [];
  const distanceMax = Math.min(typosMax, 1 + Math.floor(word.length / lettersPerTypo));
  const distances = new Map<string, number>();
  for (const [folded, name] of names) {
    const isContained = word.length >= lettersContainedMin && folded.includes(word);
    const distance = isContained ? 1 : editDistance(word, folded, distanceMax);
    const typosAllowed = word[0] === folded[0] ? distanceMax : typosWithOtherInitialMax;
    if (distance <= typosAllowed) distances.set(name, Math.min(distance, distances.get(name) ?? distance));
  }
  return [...distances]
    .toSorted(([, a], [, b]) => a - b)
    .slice(0, suggestionsMax)
    .map(([name]) => name);
}

/** ` Did you mean "A", "B" or "C"?`, to be appended to a sentence; "" without names. */
export function didYouMean(names: readonly string[]): string {
  if (names.length === 0) return "";
  return ` Did you mean ${listOfAlternatives.format(names.map((name) => `"${name}"`))}?`;
}

const listOfAlternatives = new Intl.ListFormat("en-GB", { type: "disjunction" });

/**
 * The Levenshtein distance of two words; Infinity above the maximum. Cells farther from the diagonal than the maximum cannot
 * be part of a short enough path, so they are not computed.
 */
function editDistance(from: string, to: string, distanceMax: number): number {
  if (Math.abs(from.length - to.length) > distanceMax) return Infinity;
  let [previous, current] = rows;
  for (let column = 0; column <= distanceMax; column += 1) previous[column] = column;
  for (let row = 1; row <= from.length; row += 1) {
    const first = Math.max(1, row - distanceMax);
    const last = Math.min(to.length, row + distanceMax);
    let nearest = row;
    current[first - 1] = first === 1 ? row : distanceMax + 1;
    for (let column = first; column <= last; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const removed = column < row + distanceMax ? (previous[column] ?? 0) + 1 : Infinity;
      const distance = Math.min(replaced, removed, (current[column - 1] ?? 0) + 1);
      current[column] = distance;
      nearest = Math.min(nearest, distance);
    }
    if (nearest > distanceMax) return Infinity;
    [previous, current] = [current, previous];
  }
  return previous[to.length] ?? Infinity;
}
