/** Bodies of answers that do not come from a provider, or come from a broken one. */
export const foreignBodies = [
  "",
  " ",
  "null",
  "true",
  "0",
  '"x"',
  "[]",
  "{}",
  "[[]]",
  "[null]",
  "\ufeff{}",
  '{"__proto__":{"results":[]}}',
  '{"error":"x"}',
  '{"message":"x"}',
  "<!doctype html><title>Just a moment...</title>",
  "Too Many Requests",
  "[".repeat(100_000),
  `${'{"results":'.repeat(20_000)}1${"}".repeat(20_000)}`,
];
/** Unexpected values for a part of an answer. An empty list is not among them, because it may be valid. */
export const unexpectedValues: readonly unknown[] = [
  null,
  0,
  -1,
  1e308,
  "",
  "x",
  "\ud800",
  "javascript:alert(1)",
  {},
  [null],
  ["x"],
  [[]],
  { toString: 1, length: 3, constructor: "x" },
];
/** A text that would be harmful on a page or in a log. */
export const harmfulText =
  '<script>alert(1)</script><img src=x onerror="alert(1)">&nbsp;javascript:alert(1)\u0000\u202e';

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** The paths of all parts of a value, through lists and objects. */
export function pathsOf(value: unknown): string[][] {
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, part]) => [[key], ...pathsOf(part).map((path) => [key, ...path])]);
}

/** The part at a path. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((part, key) => (isRecord(part) ? part[key] : undefined), value);
}

/** A copy with another value at a path. */
export function withValueAt(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((part, at) => (String(at) === key ? withValueAt(part, rest, by) : part));
  return isRecord(value) ? { ...value, [key]: withValueAt(value[key], rest, by) } : value;
}
