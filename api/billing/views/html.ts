import { html as template } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";

/** A piece of a page that is safe to send. */
export type Html = HtmlEscapedString;

/** What may stand in a template; `undefined` and `false` are nothing. Texts are escaped, also in quoted attributes. */
export type Part = Html | string | number | false | undefined | readonly Part[];

/** Builds a piece of a page. Whatever is put in is escaped, unless it was built by this function itself. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  const made = template(strings, ...parts);
  if (made instanceof Promise) throw new Error("a page waits for nothing: it is read first and written then");
  return made;
}
