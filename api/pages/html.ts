import { html as template } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";

/** A piece of a page that is safe to send. */
export type Html = HtmlEscapedString;

/** A value in a template. `undefined` and `false` add nothing. Strings are escaped, in quoted attributes too. */
export type Part = Html | string | number | false | undefined | readonly Part[];

/** Builds a piece of a page. Every value is escaped, unless this function built it. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  const built = template(strings, ...parts);
  if (built instanceof Promise) throw new Error("a template never awaits: all data is read before a page is written");
  return built;
}
