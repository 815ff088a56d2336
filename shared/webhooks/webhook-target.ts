import ipaddr from "ipaddr.js";
import type { Config } from "../config.ts";

/** Where webhooks may lead; a value of WEBHOOK_TARGETS. */
export type WebhookTargets = Config["WEBHOOK_TARGETS"];

const lengthMax = 2_000;
/** IPv6 addresses that are given out for the internet. All others are local, reserved, or hold an IPv4 address. */
const globalUnicast = ipaddr.IPv6.parse("2000::");

/**
 * Why a URL cannot be a webhook's, as a sentence for the payer; undefined if it can. A name may still lead to a private
 * address, which each delivery finds out for itself.
 */
export function targetProblem(text: string, targets: WebhookTargets): string | undefined {
  const url = URL.parse(text);
  if (targets === "none") return "The operator of this service has turned webhooks off.";
  if (url === null || url.href.length > lengthMax) return `Expected a URL of at most ${lengthMax} characters.`;
  if (url.protocol !== "https:" && !(targets === "any" && url.protocol === "http:"))
    return "Expected a URL that begins with https://.";
  if (url.username !== "" || url.password !== "") return "Expected a URL without a user name or password.";
  if (url.hash !== "") return "Expected a URL without a part behind #.";
  const address = addressIn(url);
  if (targets === "public" && address !== undefined && !isPublicAddress(address))
    return "Expected an address of the internet, and not of a private network.";
  return undefined;
}

/** The IP address that a URL has in place of a name. URLs write each notation of an IPv4 address in the usual one. */
export function addressIn({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[|\]$/g, "");
  return ipaddr.isValid(address) ? address : undefined;
}

/** Whether an IP address is one of the internet: not private, loopback, link-local, multicast or reserved. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast") return false;
  if (parsed instanceof ipaddr.IPv6) return parsed.match(globalUnicast, 3);
  return !unlistedRanges.some(([range, bits]) => parsed.match(range, bits));
}

/** Ranges that the library counts as public: for measurements between networks (RFC 2544), and for relays (RFC 7526). */
const unlistedRanges = [
  [ipaddr.IPv4.parse("198.18.0.0"), 15],
  [ipaddr.IPv4.parse("192.88.99.0"), 24],
] as const;
