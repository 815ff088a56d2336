import { type ErrorCode, errors } from "../../shared/errors.ts";

/**
 * The heading of an error's section in the reference: `429 rate limited (retry)`. Its search finds the status and the word
 * `retry`. The code is in words, because the reference takes two underscores for emphasis.
 */
export function helpHeadingOf(code: ErrorCode): string {
  const { status, retry } = errors[code];
  return `${status} ${code.replaceAll("_", " ")} (${retry ? "retry" : "no retry"})`;
}

/** The path of that section, as the reference makes anchors of its headings. */
export function helpPathOf(code: ErrorCode): string {
  const slug = helpHeadingOf(code).replace(/[()]/g, "").replaceAll(" ", "-");
  return `/docs#description/${slug}`;
}

/** The header `Link` of an error's answer. The address is relative, so it is right behind any proxy. */
export const helpLinkOf = (code: ErrorCode) => `<${helpPathOf(code)}>; rel="help"`;
