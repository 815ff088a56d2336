import { createHash } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { Redis } from "ioredis";
import { CountedWindow } from "./counted-window.ts";

const attemptsMax = 10;
/** The window in which they are counted. */
export const attemptsWindowSeconds = 60;

/** Limits sign-in attempts per network, against guessed tokens. Successful attempts count too. */
export class SignInAttempts {
  readonly #window: CountedWindow;

  constructor(redis: Redis) {
    const limits = { keyPrefix: "sign-ins:", requestsMax: attemptsMax, windowSeconds: attemptsWindowSeconds };
    this.#window = new CountedWindow(redis, limits);
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
