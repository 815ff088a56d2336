export const suggestionsMax = 3;
/** Longer words get no suggestions: comparing costs letters times letters, and no name is that long. */
const lettersComparedMax = 30;
/** More slips than that are another word. It also keeps a refusal cheap, which no rate window does. */
const slipsMax = 3;
const lettersPerSlip = 6;
/** Where not even the first letter is right, it takes a single slip: `Noland` may be meant to be `Poland`, `Xoyland` not. */
const slipsWithAnotherInitialMax = 1;
/** From this many letters on, a name that contains the word counts as close to it (`Korea`, `Congo`). */
const lettersContainedMin = 4;
/** Two rows of the table of distances, the same ones for every pair of words. */
const rows: [Uint8Array, Uint8Array] = [
  new Uint8Array(lettersComparedMax + slipsMax + 1),
  new Uint8Array(lettersComparedMax + slipsMax + 1),
];

/** The letters and digits of a name, so that case, accents, dots and dashes do not matter: `Côte d’Ivoire` → `cote d ivoire`. */
export function foldName(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replaceAll("&", " and ")
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")
    .trim();
}

/** Blanks do not matter either in the names of countries and regions: `Viet Nam`, `U. S. A.`, `HongKong`. */
export function removeSpaces(folded: string): string {
  return folded.replaceAll(" ", "").replace(/^saint/, "st");
}

/** Up to three of the names that a folded word may have been meant to be, closest first; none if nothing is near. */
export function closestNames(word: string, names: ReadonlyMap<string, string>): string[] {
  if (word === "" || word.length > lettersComparedMax) return [];
  const distanceMax = Math.min(slipsMax, 1 + Math.floor(word.length / lettersPerSlip));
  const distances = new Map<string, number>();
  for (const [folded, name] of names) {
    const contained = word.length >= lettersContainedMin && folded.includes(word);
    const distance = contained ? 1 : editDistance(word, folded, distanceMax);
    const slipsAllowed = word[0] === folded[0] ? distanceMax : slipsWithAnotherInitialMax;
    if (distance <= slipsAllowed) distances.set(name, Math.min(distance, distances.get(name) ?? distance));
  }
  return [...distances]
    .toSorted(([, a], [, b]) => a - b)
    .slice(0, suggestionsMax)
    .map(([name]) => name);
}

/** The beginning of a text, cut between two code points, as far as a message may repeat what was sent. */
export function truncate(text: string, charactersMax = 64): string {
  let cut = 0;
  let characters = 0;
  for (const character of text) {
    if (characters === charactersMax) break;
    cut += character.length;
    characters += 1;
  }
  return text.slice(0, cut).toWellFormed();
}

/** The quoted names as the end of a sentence, or nothing. */
export function didYouMean(names: readonly string[]): string {
  return names.length === 0 ? "" : ` Close to it: ${names.map((name) => `"${name}"`).join(", ")}.`;
}

/**
 * Letters to insert, delete or replace on the way from one word to the other; Infinity where it is over the maximum.
 * Further from the diagonal than the maximum every way is too long, so there is nothing to compute.
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
