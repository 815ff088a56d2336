import { createHmac, randomBytes } from "node:crypto";

/**
 * The secrets and signatures of Standard Webhooks, symmetric and in their version 1:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */

const prefix = "whsec_";
const secretBytes = 32;

/** A new secret, as payers see it. */
export const newSecret = () => prefix + randomBytes(secretBytes).toString("base64");

/** The signature of an event with a secret of {@link newSecret}. `sentAt` counts in whole seconds, as the header has it. */
export function signEvent(
  secret: string,
  { eventId, sentAt, body }: { eventId: string; sentAt: Date; body: string },
): string {
  const key = Buffer.from(secret.slice(prefix.length), "base64");
  const seconds = Math.floor(sentAt.getTime() / 1_000);
  return `v1,${createHmac("sha256", key).update(`${eventId}.${seconds}.${body}`).digest("base64")}`;
}
