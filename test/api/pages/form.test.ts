import { expect, test } from "vitest";
import { dollarsText, parseDollars } from "../../../api/pages/form.ts";

/** Amounts in the fields of forms, and in commands with `--usd`. */

test.each([
  ["5", 5_000],
  ["7.50", 7_500],
  ["0.505", 505],
  [" $1000 ", 1_000_000],
  ["5.000", 5_000],
  ["999999999.999", 999_999_999_999],
])("the amount %s is read as dollars", (text, mils) => {
  expect(parseDollars(text)).toBe(mils);
});

test.each(["0,505", "1,000", "1,000.50", "1.000,50", "12,5", "1.2345", "-1", "1e3", "5 EUR", "NaN", "", "."])(
  "the amount %s, which may be meant in two ways or is none, is refused",
  (text) => {
    expect(parseDollars(text)).toBeUndefined();
  },
);

test.each([
  [0, "0.00"],
  [5, "0.005"],
  [500, "0.50"],
  [5_000, "5.00"],
  [1_234_560, "1234.56"],
  [999_999_999_999, "999999999.999"],
  [null, ""],
])("a field shows %s mils as %s, without grouping, and reads the same amount back", (mils, text) => {
  expect(dollarsText(mils)).toBe(text);
  expect(parseDollars(text)).toBe(mils ?? undefined);
});
