import { decodeHTMLStrict } from "entities";
import { withoutWww } from "../../shared/query/domains.ts";
import { truncate } from "../../shared/errors/truncate.ts";

/** A part in angle brackets. Most of them belong to the text: `<div>: the element`, `List<T>`, `a<b and c>d`. */
const bracketed = /<(?:"[^"]*"|'[^']*'|[^<>"'])+>|<[^<>]+>/g;
/** Formatting tags of snippets: in lower case (`List<B>` is text), and every attribute with a value (`<b and c>` is text). */
const formattingTag =
  /^<(?:b|br|em|i|mark|span|strong|sub|sup|u|wbr)(?:(?:\s+|(?<=["']))[a-z][\w-]*=(?:"[^"]*"|'[^']*'|[^\s"'=]+))*\s*\/?>$/;
/** Tags that run, load, link or hide something: script, style, comments, and any tag with an attribute that does. */
const activeTag =
  /^<(?:!--|(?:script|style)[\s/>]|[a-z][^]*?["'\s/:](?:on[a-z]+|src[a-z]*|href|data|style|action|formaction|background|content|ping|poster)\s*=)/i;
const lineBreakTag = /^<br\b/;
/** Tags that never have a partner. */
const voidTag = /^<w?br\b/;
const bareTag = /^<[a-z]+\s*\/?>$/i;
const tagName = /^<\/?([a-z][^\s/>]*)/i;
const invalidInUrl = /[\s\p{Cc}\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;
/** A URL whose host every parser reads alike: two slashes, no user name, no backslash before the path. */
const unambiguousHost = /^https?:\/\/[^/\\?#@]+(?:[/?#]|$)/i;
const invisible = /[\p{Cc}\p{Zl}\p{Zp}\u00a0\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;
/**
 * Embeddings, overrides and isolates of bidirectional text. They change the order of all that follows, so a text could look
 * like another one (Unicode Technical Report 36, section 3.3). The marks LRM, RLM and ALM affect only their neighbours, and
 * ZWJ and ZWNJ are part of the spelling of Persian, of Indic languages and of emoji: these stay.
 */
const bidiControls = /[\u202a-\u202e\u2066-\u2069]+/g;
/**
 * Tag characters. They spell ASCII that no person sees and that models read. Only the flags of regions, such as Scotland, are
 * spelled with them: the group is such a flag.
 */
const tagCharacters = /(\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{3,6}\u{e007f})|[\u{e0000}-\u{e007f}]+/gu;
const lineBreak = /[\p{Cc}\p{Zl}\p{Zp}]/u;
/** Spaces, and line breaks and tabs between them. */
const gaps = /[\p{Cc}\p{Zl}\p{Zp} ]+/gu;

/** The most characters of a text or a URL of a result. */
export const textCharactersMax = 10_000;
/** How much of a text is read: tags and entities make it shorter. To read megabytes would block the worker's other searches. */
const readCharactersMax = 4 * textCharactersMax;

/**
 * A text as a person reads it: formatting and active tags removed, entities decoded, line breaks, tabs and NBSP replaced by
 * spaces, trimmed, and cut to {@link textCharactersMax} characters with an ellipsis. Other angle brackets and escaped tags
 * stay in the text, so a client that renders it as HTML must escape it.
 */
export function plainText(text: string): string {
  const read = text.length > readCharactersMax ? text.slice(0, readCharactersMax) : text;
  const untagged = read.includes("<") ? withoutTags(read) : read;
  // An entity ends with a semicolon: in `?id=5&section=news` there is none.
  const decoded = untagged.includes("&") ? decodeHTMLStrict(untagged) : untagged;
  const visible = invisible.test(decoded) ? withoutInvisible(decoded) : decoded;
  return shortened(visible.toWellFormed().trim());
}

function shortened(text: string): string {
  if (text.length <= textCharactersMax) return text;
  const kept = truncate(text, textCharactersMax - 1);
  // A copy: a slice would keep the provider's whole text in memory.
  return Buffer.from(`${kept}…`).toString();
}

function withoutInvisible(text: string): string {
  return text
    .replace(bidiControls, "")
    .replace(tagCharacters, "$1")
    .replaceAll("\u00a0", " ")
    .replace(gaps, (gap) => (lineBreak.test(gap) ? " " : gap));
}

/** A closing tag goes with its opening one. */
function withoutTags(text: string): string {
  const partners = partnersIn(text);
  const start = text.search(/\S/);
  const removed = new Set<number>();
  return text.replace(bracketed, (part, at: number) => {
    const partner = partners.get(at);
    const isRemoved = part.startsWith("</")
      ? partner !== undefined && removed.has(partner)
      : isMarkup(part, { hasPartner: partner !== undefined, isFirst: at === start });
    if (!isRemoved) return part;
    removed.add(at);
    return lineBreakTag.test(part) ? "\n" : "";
  });
}

/** Formatting and active tags, but not one that a text is about: `<b>: The Bring Attention To element`, `<br>: …`, `<script> tags`. */
function isMarkup(part: string, { hasPartner, isFirst }: { hasPartner: boolean; isFirst: boolean }): boolean {
  if (!formattingTag.test(part) && !activeTag.test(part)) return false;
  return !bareTag.test(part) || (voidTag.test(part) ? !isFirst : hasPartner);
}

/** Where in a text the tags begin that have a partner, each with where that begins: `<b>` with the next `</b>`, and the reverse. */
function partnersIn(text: string): Map<number, number> {
  const partners = new Map<number, number>();
  const opened = new Map<string, number[]>();
  for (const { 0: part, index } of text.matchAll(bracketed)) {
    const name = tagName.exec(part)?.[1]?.toLowerCase() ?? "";
    const openings = opened.get(name) ?? [];
    opened.set(name, openings);
    if (!part.startsWith("</")) {
      openings.push(index);
      continue;
    }
    const opening = openings.pop();
    if (opening !== undefined) partners.set(opening, index).set(index, opening);
  }
  return partners;
}

/**
 * The URL of a result as the engine gives it, without Google's redirect and tracking; "" if it is not http or https, an encrypted
 * redirect, or longer than {@link textCharactersMax}: a part of it would lead elsewhere.
 */
export function plainUrl(text: string): string {
  const url = text.length > textCharactersMax ? "" : withoutTracking(checkedUrl(text.trim()));
  return url.length > textCharactersMax ? "" : url;
}

function checkedUrl(text: string): string {
  const given = isEncryptedRedirect(text) ? "" : unwrapRedirect(text);
  const isUsual = unambiguousHost.test(given) && !invalidInUrl.test(given) && given.isWellFormed();
  if (isUsual) return URL.canParse(given) ? given : "";
  // Spaces, line breaks and lone surrogates are encoded here, as a browser would silently do.
  const url = /^https?:\/\//i.test(given) ? URL.parse(given) : null;
  if (!url) return "";
  // In https://bank.example@other.example/ the bank is a user name, which a person takes for the host.
  url.username = "";
  url.password = "";
  return url.href;
}

/** What Google's links to its own searches say of the page that they stand on. They find the same without it. */
const trackingParameter = /[?&](?:ei|iflsig|sa|sca_esv|sca_upv|sqi|sxsrf|usg|ved|vet)=[^&]*/g;

/** `/search?q=pump&sa=X&ved=2ah` → `/search?q=pump`, on Google's own hosts only. */
function withoutTracking(url: string): string {
  const [, path = "", host = "", query = "", fragment = ""] =
    /^(https?:\/\/([^/]+)\/search)(\?[^#]*)(.*)$/i.exec(url) ?? [];
  if (!isGoogleHost(host.toLowerCase())) return url;
  return path + query.replace(trackingParameter, "").replace(/^&/, "?") + fragment;
}

/** The host of a URL in lower case, as punycode, without `www.` and the root's dot; "" for "". */
export const domainOf = (url: string): string =>
  url === "" ? "" : withoutWww(new URL(url).hostname.replace(/\.$/, ""));

/**
 * Whether an address is a redirect of Google whose target only Google can read: `/goto?url=CAES…`. It differs each time and opens
 * only in a browser. Google serves these to clients that it takes for programs, and providers pass some of them on.
 */
export function isEncryptedRedirect(text: string): boolean {
  if (!text.includes("/goto?")) return false;
  const url = URL.parse(text, "https://www.google.com/");
  return url?.pathname === "/goto" && isGoogleHost(url.host);
}

const redirectPath = /^\/(?:scholar_)?url$/;

/** `/url?q=https://example.com/&sa=U` → `https://example.com/`, on Google's own hosts only. On those of Google Scholar it is `/scholar_url`. */
function unwrapRedirect(text: string): string {
  if (!text.includes("url?")) return text;
  const url = URL.parse(text, "https://www.google.com/");
  if (!url || !redirectPath.test(url.pathname)) return text;
  if (!isGoogleHost(url.pathname === "/url" ? url.host : url.host.replace(/^scholar\./, ""))) return text;
  // With two different targets the redirect stays.
  const targets = [...url.searchParams.getAll("q"), ...url.searchParams.getAll("url")];
  const [target, ...others] = new Set(targets.filter((given) => given !== ""));
  return target === undefined || others.length > 0 ? text : target;
}

/** Five times as many as a hundred results with every field have. Reading more would block the worker's other searches. */
const partsMax = 50_000;

/**
 * Parses JSON. Returns undefined, which no answer schema accepts, if it is invalid or has more parts than any page. So lists
 * are bounded even where a schema sets no bound.
 */
export const parseJson = (body: string): unknown => (hasTooManyParts(body) ? undefined : parseList(body));

/** Parses a whole list, which is larger than any page. Only the operator's command does this, never a worker. */
export function parseList(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** A comma or an opening bracket comes before each part. Those within strings are counted too, which is harmless. */
function hasTooManyParts(body: string): boolean {
  // Each part has at least two characters, so a short body cannot have too many.
  if (body.length <= 2 * partsMax) return false;
  let parts = 0;
  // indexOf takes a quarter of the time of parsing. A loop over all characters would take twice as long as that.
  for (const mark of [",", "[", "{"]) {
    for (let at = body.indexOf(mark); at >= 0 && parts <= partsMax; at = body.indexOf(mark, at + 1)) parts += 1;
  }
  return parts > partsMax;
}

/**
 * The domains of Google's search, as Google publishes them at https://www.google.com/supported_domains, without the common
 * `google.` in front. A pattern would accept hosts that anyone can register, such as google.evil.com.
 */
const googleDomains = new Set(
  `com ad ae com.af com.ag al am co.ao com.ar as at com.au az ba com.bd be bf bg com.bh bi bj com.bn com.bo com.br bs bt co.bw
  by com.bz ca cd cf cg ch ci co.ck cl cm cn com.co co.cr com.cu cv com.cy cz de dj dk dm com.do dz com.ec ee com.eg es com.et
  fi com.fj fm fr ga ge gg com.gh com.gi gl gm gr com.gt gy com.hk hn hr ht hu co.id ie co.il im co.in iq is it je com.jm jo
  co.jp co.ke com.kh ki kg co.kr com.kw kz la com.lb li lk co.ls lt lu lv com.ly co.ma md me mg mk ml com.mm mn com.mt mu mv mw
  com.mx com.my co.mz com.na com.ng com.ni ne nl no com.np nr nu co.nz com.om com.pa com.pe com.pg com.ph com.pk pl pn com.pr
  ps pt com.py com.qa ro ru rw com.sa com.sb sc se com.sg sh si sk com.sl sn so sm sr st com.sv td tg co.th com.tj tl tm tn to
  com.tr tt com.tw co.tz com.ua co.ug co.uk com.uy co.uz com.vc co.ve co.vi com.vn vu ws rs co.za co.zm co.zw cat`.split(
    /\s+/,
  ),
);

/** Whether a host, as a parsed URL spells it, is one of Google's search: `google.de` or `www.google.de`. */
function isGoogleHost(host: string): boolean {
  const [, domain] = /^(?:www\.)?google\.(.+)$/.exec(host) ?? [];
  return domain !== undefined && googleDomains.has(domain);
}

/** Whether a URL is a page of Google's search; false for a text that is no URL, and for a redirect to another site. */
export const isOnGoogle = (url: string): boolean =>
  isGoogleHost(URL.parse(url)?.host ?? "") && !isEncryptedRedirect(url);
