import { domainToASCII } from "node:url";

const hostCharactersMax = 253;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** The ASCII characters that no host name has. domainToASCII would decode the percent sign and pass the underscore. */
const foreign = /[ !"$%&'()*+,:;<=>@[\\\]^_`{|}~]/;
/** A host that ends in a number is an address: domainToASCII reads `1.2.3` as 1.2.0.3. */
const number = /^(?:\d+|0x[0-9a-f]*)$/i;

/**
 * Reads a host name as a person writes it: `https://www.Bücher.example/neu?x=1` → `xn--bcher-kva.example`.
 * undefined where it is no host name with a dot: an address, a port, a user, a wildcard.
 */
export function readDomain(text: string): string | undefined {
  const typed = text
    .trim()
    .replace(/^https?:\/\//i, "")
    .replace(/[/?#].*$/s, "")
    .replace(/\.$/, "");
  if (foreign.test(typed)) return undefined;
  const host = withoutWww(domainToASCII(typed));
  const labels = host.split(".");
  const isHostName = host.length <= hostCharactersMax && labels.length >= 2 && labels.every((part) => label.test(part));
  return isHostName && !number.test(labels.at(-1) ?? "") && !number.test(typed.slice(typed.lastIndexOf(".") + 1))
    ? host
    : undefined;
}

/** `www.example.com` → `example.com`; `www.com` is a domain of its own. */
export function withoutWww(host: string): string {
  return /^www\.[^.]+\./.test(host) ? host.slice("www.".length) : host;
}

/** Whether a host is the domain or lies below it. Both in lower case and as punycode. */
export function isSameOrSubdomain(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}
