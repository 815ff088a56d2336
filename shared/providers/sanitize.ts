import { decodeHTML } from "entities";
import { withoutWww } from "../query/domains.ts";

/** What stands in angle brackets. Most of it belongs to the text: `<div>: the element`, `List<T>`, `a<b and c>d`. */
const bracketed = /<(?:"[^"]*"|'[^']*'|[^<>"'])+>|<[^<>]+>/g;
/** What snippets are marked up with, in lower case (`List<B>` is none), and with values to all attributes (`<b and c>` is none). */
const formatting =
  /^<\/?(?:b|br|em|i|mark|span|strong|sub|sup|u|wbr)(?:(?:\s+|(?<=["']))[a-z][\w-]*=(?:"[^"]*"|'[^']*'|[^\s"'=]+))*\s*\/?>$/;
/** What would run, load or lead to something, or is hidden: a script, a style, a comment, and any tag whose attribute does. */
const active =
  /^<(?:!--|\/?(?:script|style)[\s/>]|[a-z][^]*?["'\s/:](?:on[a-z]+|src[a-z]*|href|data|style|action|formaction|background|content|ping|poster)\s*=)/i;
const characterThatNoUrlHas = /[\s\p{Cc}]/u;
const characterThatMustGo = /\p{Cc}+/gu;

/**
 * A text as people read it: formatting and active tags stripped, entities decoded, line breaks, tabs and NBSP as blanks,
 * trimmed. All else in angle brackets stays, and so does a tag that came escaped: whoever makes HTML of it has to escape it.
 */
export function plainText(text: string): string {
  const untagged = text.includes("<") ? withoutTags(text) : text;
  const decoded = untagged.includes("&") ? decodeHTML(untagged) : untagged;
  return decoded.replace(characterThatMustGo, " ").replaceAll("\u00a0", " ").toWellFormed().trim();
}

function withoutTags(text: string): string {
  const opened = new Set<string>();
  return text.replace(bracketed, (part) => {
    const name = /^<\/?([a-z][^\s/>]*)/i.exec(part)?.[1]?.toLowerCase() ?? "";
    if (formatting.test(part)) return "";
    if (active.test(part)) opened.add(name);
    else if (!part.startsWith("</") || !opened.has(name)) return part;
    return "";
  });
}

/** The address of a result as the engine gives it, unwrapped from its redirect, or "" where it is not http or https. */
export function plainUrl(text: string): string {
  const url = unwrapped(text.trim());
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return "";
  // What a browser would repair without a word (blanks, line breaks, halves of characters) is repaired here.
  return characterThatNoUrlHas.test(url) || !url.isWellFormed() ? new URL(url).href : url;
}

/** The host of an address in lower case, as punycode and without `www.`; "" for no address. */
export function domainOf(url: string): string {
  return url === "" ? "" : withoutWww(new URL(url).hostname);
}

/** `/url?q=https://example.com/&sa=U` → `https://example.com/`, on Google's own hosts only. */
function unwrapped(text: string): string {
  const wrapped = /^(?:https?:\/\/(?:www\.)?google\.[a-z.]+)?\/url\?(.*)$/i.exec(text)?.[1];
  if (wrapped === undefined) return text;
  const parameters = new URLSearchParams(wrapped);
  return parameters.get("q") ?? parameters.get("url") ?? text;
}

/** Five times what a hundred results have with everything about them. What has more would hold a worker up, whoever reads it. */
const partsMax = 50_000;

/**
 * The value that a text of JSON holds; undefined, which no schema of an answer takes, where it is none or has more parts
 * than any page. So lists that nobody counts while reading have a bound, too.
 */
export function parseJson(body: string): unknown {
  if (hasTooManyParts(body)) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** In front of each part stands a comma or what opens its list or object. Those within texts count along, which does no harm. */
function hasTooManyParts(body: string): boolean {
  // A part has two characters at least, so what is short enough need not be counted.
  if (body.length <= 2 * partsMax) return false;
  let parts = 0;
  // Searched for, which takes a quarter of the time of parsing; a look at each character would take twice that time.
  for (const mark of [",", "[", "{"]) {
    for (let at = body.indexOf(mark); at >= 0 && parts <= partsMax; at = body.indexOf(mark, at + 1)) parts += 1;
  }
  return parts > partsMax;
}
