/** What a model does not need beside the `url`. */
const derived = new Set(["domain", "breadcrumb"]);

/**
 * An answer as a model reads it: the same JSON, whose results have no empty fields and neither `domain` nor `breadcrumb`.
 * Models pay for each character that they read, and most fields of most results are empty.
 * @param body the answer, as the worker wrote it.
 */
export function shortText(body: Buffer): string {
  const answer: { results: unknown } = JSON.parse(body.toString());
  return JSON.stringify({ ...answer, results: shorten(answer.results) });
}

/** The value without fields that are empty or derived, at any depth. */
function shorten(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shorten);
  if (typeof value !== "object" || value === null) return value;
  // A loop: lists of entries in between would take as long as parsing the answer.
  const kept: Record<string, unknown> = {};
  for (const [name, whole] of Object.entries(value)) {
    if (derived.has(name)) continue;
    const inner = shorten(whole);
    if (!isEmpty(inner)) kept[name] = inner;
  }
  return kept;
}

const isEmpty = (value: unknown): boolean =>
  value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
