const amountPattern = /^\$?(\d{1,9}|\d{1,3}(?:,\d{3}){1,2})(?:\.(\d{1,3}))?$/;

/** Reads an amount as people write it, `5`, `7.50`, `$1,000`. @returns mils; undefined for any other text. */
export function parseDollars(text: string): number | undefined {
  const [, whole, decimals = ""] = amountPattern.exec(text.trim()) ?? [];
  if (whole === undefined) return undefined;
  return Number(whole.replaceAll(",", "")) * 1_000 + Number(decimals.padEnd(3, "0"));
}
