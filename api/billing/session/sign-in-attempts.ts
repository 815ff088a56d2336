import { createHash } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { Redis } from "ioredis";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { CountedWindow } from "./counted-window.ts";

const keyPrefix = "sign-ins:";
const attemptsMax = 10;
/** The window in which they are counted. */
export const attemptsWindowSeconds = 60;
const tokenSignInsMax = 200;
/** An organization can have a hundred tokens, and make new ones. */
const organizationSignInsMax = 1_000;
const tokenWindowSeconds = 86_400;

/**
 * Limits sign-in attempts per network, against guessed tokens, and sign-ins per token and organization, each of which the audit trail
 * keeps for 90 days, with its sign-out.
 * Successful attempts count too.
 */
export class SignInAttempts {
  readonly #window: CountedWindow;
  readonly #tokenWindow: CountedWindow;
  readonly #organizationWindow: CountedWindow;

  constructor(redis: Redis) {
    const [requestsMax, windowSeconds] = [attemptsMax, attemptsWindowSeconds];
    this.#window = new CountedWindow(redis, { keyPrefix, requestsMax, windowSeconds });
    const daily = { keyPrefix, windowSeconds: tokenWindowSeconds };
    this.#tokenWindow = new CountedWindow(redis, { ...daily, requestsMax: tokenSignInsMax });
    this.#organizationWindow = new CountedWindow(redis, { ...daily, requestsMax: organizationSignInsMax });
  }

  /**
   * Counts one sign-in with a valid token. @returns undefined if it is within the day's limits, otherwise whose limit it exceeds
   * and the milliseconds until that ends. @throws {CallerError} `unavailable` without Redis.
   */
  async takeOfCaller({
    tokenId,
    organizationId,
  }: Pick<Caller, "tokenId" | "organizationId">): Promise<
    { of: "token" | "organization"; retryAfterMs: number } | undefined
  > {
    const ofTokenMs = await this.#tokenWindow.take(tokenId);
    if (ofTokenMs !== undefined) return { of: "token", retryAfterMs: ofTokenMs };
    // A token beyond its own limit takes nothing of its organization's.
    const ofOrganizationMs = await this.#organizationWindow.take(organizationId);
    return ofOrganizationMs === undefined ? undefined : { of: "organization", retryAfterMs: ofOrganizationMs };
  }

  /** Counts one attempt. @returns whether it is within the limit. @throws {CallerError} `unavailable` without Redis. */
  async allow(address: string | undefined): Promise<boolean> {
    // Redis stores a hash of the network, not the address of a person.
    const network = createHash("sha256").update(networkOf(address)).digest("base64url");
    return (await this.#window.take(network)) === undefined;
  }
}

/** An IPv4 address, or the /64 network of an IPv6 address: one subscriber has all of it. A proxy may report neither. */
function networkOf(address = ""): string {
  if (!ipaddr.isValid(address)) return "unknown";
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(":") : parsed.toString();
}
