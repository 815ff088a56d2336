-- Outside of a transaction: waits for the settlements that began before the functions of 029, and write to `paid_keys`.
reindex index concurrently paid_keys_by_expiry;
