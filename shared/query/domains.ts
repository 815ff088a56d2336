import { domainToASCII } from "node:url";

const hostCharactersMax = 253;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** ASCII characters that are invalid in a host name. domainToASCII would decode percent escapes and accept underscores. */
const invalidCharacter = /[ !"$%&'()*+,:;<=>@[\\\]^_`{|}~]/;
/** A host that ends in a number is an IP address: domainToASCII reads `1.2.3` as 1.2.0.3. */
const numericLabel = /^(?:\d+|0x[0-9a-f]*)$/i;

/**
 * Reads a host name as a person writes it: `https://www.Bücher.example/neu?x=1` → `xn--bcher-kva.example`.
 * Returns undefined for anything but a host name with a dot, such as an IP address, a port, a user or a wildcard.
 */
export function readDomain(text: string): string | undefined {
  const typed = text
    .trim()
    .replace(/^https?:\/\//i, "")
    .replace(/[/?#].*$/s, "")
    .replace(/\.$/, "");
  // Before the conversion, whose time grows with the square of the length.
  if (typed.length > hostCharactersMax || invalidCharacter.test(typed)) return undefined;
  const host = withoutWww(domainToASCII(typed));
  const labels = host.split(".");
  const isHostName = host.length <= hostCharactersMax && labels.length >= 2 && labels.every((part) => label.test(part));
  return isHostName &&
    !numericLabel.test(labels.at(-1) ?? "") &&
    !numericLabel.test(typed.slice(typed.lastIndexOf(".") + 1))
    ? host
    : undefined;
}

/** `www.example.com` and `www.www.example.com` → `example.com`. `www.com` is a domain itself and stays. */
export const withoutWww = (host: string): string => host.replace(/^(?:www\.)+(?=[^.]+\.)/, "");

/** Whether a host is the domain or one of its subdomains. Both in lower case and as punycode. */
export function isSameOrSubdomain(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}
