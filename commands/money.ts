import { type Command, InvalidArgumentError } from "commander";
import { parseDollars } from "../api/pages/form.ts";
import { parseWholeNumber } from "./argument-parsers.ts";

/**
 * Amounts that operators type and read: mils, or US dollars with `--usd`. JSON always has mils, so that a program never has to ask
 * which unit it got.
 */

/** Whether `--usd` was given, anywhere in the command. Commander knows it before it parses the arguments. */
export const isInUsd = (command: Command) => command.optsWithGlobals<{ usd?: true }>().usd === true;

/** `12.500` for 12500 mils: the mil is always shown, so that columns line up. A cost may have more decimals. */
function usd(mils: number): string {
  const size = Math.abs(mils);
  const decimals = ((size % 1_000) / 1_000)
    .toFixed(6)
    .slice(2)
    .replace(/0{1,3}$/, "");
  return `${mils < 0 ? "-" : ""}${Math.trunc(size / 1_000)}.${decimals}`;
}

/** A sentence as it was asked for: with `--usd` it says `$0.500` for `500 mils`. */
export const inAskedUnit = (command: Command, sentence: string) =>
  isInUsd(command) ? sentenceInUsd(sentence) : sentence;

const sentenceInUsd = (sentence: string) =>
  sentence.replaceAll(
    /(-?)(\d+(?:\.\d+)?) mils?\b/g,
    (_, sign: string, size: string) => `${sign}$${usd(Number(size))}`,
  );

/** A result with its amounts in dollars: `balanceMils` becomes `balanceDollars`, at any depth. */
export function resultInUsd(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(resultInUsd);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) =>
    /(^m|M)ils$/.test(name)
      ? [name.replace("Mils", "Dollars").replace("mils", "dollars"), typeof field === "number" ? usd(field) : field]
      : [name, resultInUsd(field)],
  );
  return Object.fromEntries(fields);
}

/** Parses an amount from `min` to `max` mils: in mils as a whole number, and with `--usd` in dollars, such as `12.50`. */
export function parseMils(program: Command, min: number, max: number = Number.MAX_SAFE_INTEGER, orElse = "") {
  const parseWhole = parseWholeNumber(min, max, orElse);
  return (text: string): number => {
    if (!isInUsd(program)) return parseWhole(text);
    const [, sign = "", size = ""] = /^(-?)(.*)$/s.exec(text) ?? [];
    const mils = (parseDollars(size) ?? Number.NaN) * (sign === "-" ? -1 : 1);
    if (mils >= min && mils <= max) return mils;
    const least = min < 0 ? "" : ` of at least ${usd(min)}`;
    throw new InvalidArgumentError(`expected US dollars${least} with up to three decimals, such as 12.50${orElse}`);
  };
}

/** Parses an amount from `min` mils on, or the word `none`. */
export function parseMilsOrNone(program: Command, min: number) {
  const parse = parseMils(program, min, Number.MAX_SAFE_INTEGER, ", or none");
  return (text: string): number | "none" => (text === "none" ? text : parse(text));
}
