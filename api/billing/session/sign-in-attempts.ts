import { createHash } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { Redis } from "ioredis";
import { CountedWindow } from "./counted-window.ts";

const keyPrefix = "sign-ins:";
const attemptsMax = 10;
/** The window in which they are counted. */
export const attemptsWindowSeconds = 60;
const tokenSignInsMax = 200;
const tokenWindowSeconds = 86_400;

/**
 * Limits sign-in attempts per network, against guessed tokens, and sign-ins per token, each of which the audit trail keeps.
 * Successful attempts count too.
 */
export class SignInAttempts {
  readonly #window: CountedWindow;
  readonly #tokenWindow: CountedWindow;

  constructor(redis: Redis) {
    const [requestsMax, windowSeconds] = [attemptsMax, attemptsWindowSeconds];
    this.#window = new CountedWindow(redis, { keyPrefix, requestsMax, windowSeconds });
    const daily = { requestsMax: tokenSignInsMax, windowSeconds: tokenWindowSeconds };
    this.#tokenWindow = new CountedWindow(redis, { keyPrefix, ...daily });
  }

  /**
   * Counts one sign-in with a valid token. @returns undefined if it is within the day's limit, otherwise the milliseconds until
   * that ends. @throws {CallerError} `unavailable` without Redis.
   */
  takeOfToken(tokenId: string): Promise<number | undefined> {
    return this.#tokenWindow.take(tokenId);
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
