/** What answers a worker when it is not the provider, or when that has lost its mind. */
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
/** What may stand where a part of an answer was expected. An empty list is not among them: it may be meant. */
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
/** A text that would do harm on a page or in a log. */
export const harmfulText =
  '<script>alert(1)</script><img src=x onerror="alert(1)">&nbsp;javascript:alert(1)\u0000\u202e';

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Every way into a value, of lists and objects alike. */
export function pathsOf(value: unknown): string[][] {
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, part]) => [[key], ...pathsOf(part).map((path) => [key, ...path])]);
}

/** What stands at the end of a way. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((part, key) => (isRecord(part) ? part[key] : undefined), value);
}

/** A copy with another value at the end of a way. */
export function withValueAt(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((part, at) => (String(at) === key ? withValueAt(part, rest, by) : part));
  return isRecord(value) ? { ...value, [key]: withValueAt(value[key], rest, by) } : value;
}
