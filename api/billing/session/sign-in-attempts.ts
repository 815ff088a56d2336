import { createHash } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { Redis } from "ioredis";
import { unavailable } from "../../errors.ts";

const attemptsMax = 10;
/** The window in which they are counted. */
export const attemptsWindowSeconds = 60;

/** Limits sign-in attempts per network, against guessed tokens. Successful attempts count too. */
export class SignInAttempts {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Counts one attempt. @returns whether it is within the limit. @throws {CallerError} `unavailable` without Redis. */
  async allow(address: string | undefined): Promise<boolean> {
    // Redis stores a hash of the network, not the address of a person.
    const key = `sign-ins:${createHash("sha256").update(networkOf(address)).digest("base64url")}`;
    const replies = await this.#redis
      .multi()
      .incr(key)
      .expire(key, attemptsWindowSeconds, "NX")
      .exec()
      .catch(() => undefined);
    const [failed, attempts] = replies?.[0] ?? [true];
    if (failed) throw unavailable("redis_unreachable");
    return Number(attempts) <= attemptsMax;
  }
}

/** An IPv4 address, or the /64 network of an IPv6 address: one subscriber has all of it. A proxy may report neither. */
function networkOf(address = ""): string {
  if (!ipaddr.isValid(address)) return "unknown";
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(":") : parsed.toString();
}
