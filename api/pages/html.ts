import { escapeUTF8 } from "entities";

/** A piece of a page that is safe to send. Only {@link html} makes one. Its text is `String(piece)`. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  static build(strings: TemplateStringsArray, parts: readonly Part[]): Html {
    return new Html(strings.reduce((text, next, at) => `${text}${written(parts[at - 1])}${next}`));
  }

  toString(): string {
    return this.#text;
  }
}

/** A value in a template. `undefined` and `false` add nothing. Strings are escaped, also for quoted attributes. */
export type Part = Html | string | number | false | undefined | readonly Part[];

/** Builds a piece of a page. Every value is escaped unless this function built it. */
export const html = (strings: TemplateStringsArray, ...parts: Part[]): Html => Html.build(strings, parts);

/** A sentence for people, with code in backticks, such as the message of an error. */
export const withCode = (text: string): Html =>
  html`${text.split("`").map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))}`;

function written(part: Part): string {
  if (part === undefined || part === false) return "";
  if (typeof part === "string") return escapeUTF8(part);
  return Array.isArray(part) ? part.map(written).join("") : String(part);
}
