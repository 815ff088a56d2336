/** An Idempotency-Key as it is stored: SHA-256 of the key, and of the query it was sent with. */
export interface IdempotencyKey {
  hash: string;
  fingerprint: string;
}
