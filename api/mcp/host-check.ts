import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from "@modelcontextprotocol/server";
import type { Config } from "../../shared/config.ts";

export type ForeignReason = "host_not_allowed" | "origin_not_allowed";

type HostConfig = Pick<Config, "HOST" | "PUBLIC_URL" | "MCP_ALLOWED_HOSTS">;

/**
 * Protects against DNS rebinding: a web page that points its own host name at this server, on its visitor's machine or
 * network, sends that name as Host or Origin. An IP address cannot be rebound, and only browsers send Origin.
 * @returns a function that returns why a request is rejected, or undefined.
 */
export function openHostCheck(config: HostConfig): (request: IncomingMessage) => ForeignReason | undefined {
  const allowed = [...localhostAllowedHostnames(), config.HOST, ...config.MCP_ALLOWED_HOSTS];
  if (config.PUBLIC_URL !== undefined) allowed.push(new URL(config.PUBLIC_URL).hostname);

  return ({ headers }) => {
    const host = validateHostHeader(headers.host, allowed);
    const hostname = host.ok ? host.hostname : (host.hostname ?? "");
    if (!host.ok && !isAddress(hostname)) return "host_not_allowed";
    return validateOriginHeader(headers.origin, [...allowed, hostname]).ok ? undefined : "origin_not_allowed";
  };
}

// A host name that is an IPv6 address has brackets.
const isAddress = (hostname: string) => isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;
