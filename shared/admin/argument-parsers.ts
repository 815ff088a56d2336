import { InvalidArgumentError } from "commander";

/** A whole number of an option or argument, within bounds. @throws {InvalidArgumentError} telling what was expected. */
export function parseWholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = Number(text);
    if (/^(\d+|-[1-9]\d*)$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`);
  };
}

/** An id of the given kind. @throws {InvalidArgumentError} telling what was expected. */
export function parseId(prefix: "org" | "tok") {
  return (text: string): string => {
    if (new RegExp(`^${prefix}_[0-7][0-9a-z]{25}$`).test(text)) return text;
    throw new InvalidArgumentError(`expected an id that begins with ${prefix}_`);
  };
}

/** A text that says something. @throws {InvalidArgumentError} telling what was expected. */
export function parseText(lengthMax: number) {
  return (given: string): string => {
    const length = given.trim().length;
    if (length >= 1 && length <= lengthMax) return given;
    throw new InvalidArgumentError(`expected 1 to ${lengthMax} characters`);
  };
}
