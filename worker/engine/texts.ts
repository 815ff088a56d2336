import { decodeHTML } from "entities";
import { withoutWww } from "../../shared/domains.ts";

/** A tag begins with a letter, so that `a < b` and `<3` stay. */
const tag = /<(?:\/?[a-z]|!)[^<>]*>/gi;
const characterThatNoUrlHas = /[\s\p{Cc}]/u;
const characterThatMustGo = /\p{Cc}+/gu;

/** A text as people read it: tags stripped, entities decoded, line breaks, tabs and NBSP as blanks, trimmed. */
export function plainText(text: string): string {
  const untagged = text.includes("<") ? text.replace(tag, "") : text;
  const decoded = untagged.includes("&") ? decodeHTML(untagged) : untagged;
  return decoded.replace(characterThatMustGo, " ").replaceAll("\u00a0", " ").toWellFormed().trim();
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

/** The value that a text of JSON holds, or undefined, which no schema of an answer takes. */
export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
