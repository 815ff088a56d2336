import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { begin, print, printBox } from "../../local/start-output.ts";

/** What `npm start` prints on terminals of different widths. */

const rows = [["API", "http://127.0.0.1:3000"]] as const;
const before = { isTTY: process.stdout.isTTY, columns: process.stdout.columns };
let printed: string[];
beforeEach(() => {
  printed = [];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => printed.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(process.stdout, before);
});

/** The lines that a terminal of a width gets, without its colours. */
function linesAt(columns: number, write: () => void): string[] {
  Object.assign(process.stdout, { isTTY: true, columns });
  write();
  return stripVTControlCharacters(printed.join("")).replaceAll("\r", "").split("\n");
}

test("a terminal gets the addresses in a box whose sides are aligned", () => {
  const [, top, row, bottom] = linesAt(80, () => printBox("Serpmill is running", rows));
  expect(top).toMatch(/^╭─ Serpmill is running ─+╮$/);
  expect(row).toBe("│ API         http://127.0.0.1:3000 │");
  expect([row?.length, bottom?.length]).toEqual([top?.length, top?.length]);
});

test("a terminal that is too narrow for the box gets the addresses without one, each as a whole", () => {
  const lines = linesAt(36, () => printBox("Serpmill is running", rows));
  expect(lines).toEqual(["", "Serpmill is running", "  API         http://127.0.0.1:3000", ""]);
});

test("a step takes one line of a narrow terminal, so that the next line replaces all of it", () => {
  const [step] = linesAt(30, () => begin("Postgres", "starting; the first start prepares a database"));
  print("the next line");
  expect(step?.length).toBeLessThan(30);
});
