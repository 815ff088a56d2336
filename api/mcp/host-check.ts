import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from "@modelcontextprotocol/server";
import type { Config } from "../../shared/config.ts";

export type Foreign = "host_not_allowed" | "origin_not_allowed";

/**
 * Against DNS rebinding, by which a page on the web reaches a server on the machine of whoever looks at it: such a request
 * names the page's host. An address cannot be rebound, and what is no browser sends no Origin.
 * @returns what tells why a request is foreign, or undefined where it is not.
 */
export function openHostCheck(config: Config): (request: IncomingMessage) => Foreign | undefined {
  const ours = [...localhostAllowedHostnames(), config.HOST, ...config.MCP_ALLOWED_HOSTS];
  if (config.PUBLIC_URL !== undefined) ours.push(new URL(config.PUBLIC_URL).hostname);

  return ({ headers }) => {
    const host = validateHostHeader(headers.host, ours);
    const hostname = host.ok ? host.hostname : (host.hostname ?? "");
    if (!host.ok && !isAddress(hostname)) return "host_not_allowed";
    return validateOriginHeader(headers.origin, [...ours, hostname]).ok ? undefined : "origin_not_allowed";
  };
}

// An address of IPv6 stands in brackets.
const isAddress = (hostname: string) => isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;
