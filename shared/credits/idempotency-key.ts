/** An Idempotency-Key as it is kept: SHA-256 of the key, and of the query it was sent with. */
export interface IdempotencyKey {
  hash: string;
  fingerprint: string;
}
