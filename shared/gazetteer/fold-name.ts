/** Letters that have no accent to remove, but a usual spelling without them. */
const spelledOut: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  ł: "l",
  đ: "d",
  ð: "d",
  þ: "th",
  ı: "i",
};
const withSpelling = new RegExp(`[${Object.keys(spelledOut).join("")}]`, "g");

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
export const removeSpaces = (folded: string): string => folded.replaceAll(" ", "").replace(/^saint/, "st");

/** Folds one part of a location: `Łódź` → `lodz`, `Saint-Étienne` → `st etienne`. */
export function foldLocationPart(part: string): string {
  return foldName(part)
    .replace(withSpelling, (letter) => spelledOut[letter] ?? letter)
    .replace(/\bsaint(?=e?\b)/g, "st");
}
