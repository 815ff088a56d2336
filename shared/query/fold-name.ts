/** Folds a name to its letters and digits, without case, accents, dots and dashes: `Côte d’Ivoire` → `cote d ivoire`. */
export function foldName(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replaceAll("&", " and ")
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")
    .trim();
}

/** Spaces do not matter in the names of countries and regions: `Viet Nam`, `U. S. A.`, `HongKong`. */
export function removeSpaces(folded: string): string {
  return folded.replaceAll(" ", "").replace(/^saint/, "st");
}
