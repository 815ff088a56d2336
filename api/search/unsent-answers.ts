import type { ServerResponse } from "node:http";
import type { Metrics } from "../../shared/metrics.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { RateLimited } from "../errors.ts";

/** An organization gets no more answers while it leaves this many bytes of earlier ones unread in this process. */
export const unsentBytesMax = 32 * 1024 * 1024;
const retryAfterMs = 1_000;

/** The bytes of answers that this process keeps because their callers have not taken them yet, by organization. */
export class UnsentAnswers {
  readonly #bytes = new Map<string, number>();
  readonly #gauge: Metrics["unsentBytes"];

  constructor({ unsentBytes }: Pick<Metrics, "unsentBytes">) {
    this.#gauge = unsentBytes;
  }

  /** @throws {RateLimited} if the organization has to read first. */
  check({ organizationId, plan }: Caller): void {
    if ((this.#bytes.get(organizationId) ?? 0) < unsentBytesMax) return;
    throw RateLimited.byBound({ reason: "unread", retryAfterMs, limit: unsentBytesMax }, plan);
  }

  /** @returns what counts bytes that are written to a response. They count until it closes: sent, or dropped. */
  trackUnsent(organizationId: string, response: ServerResponse): (bytes: number) => void {
    let written = 0;
    response.once("close", () => this.#change(organizationId, -written));
    return (bytes) => {
      if (response.closed) return;
      written += bytes;
      this.#change(organizationId, bytes);
    };
  }

  #change(organizationId: string, change: number): void {
    const bytes = (this.#bytes.get(organizationId) ?? 0) + change;
    if (bytes > 0) this.#bytes.set(organizationId, bytes);
    else this.#bytes.delete(organizationId);
    this.#gauge.inc(change);
  }
}
