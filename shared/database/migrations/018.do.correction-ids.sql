-- Outside of a transaction: a correction counts once, so its id is looked up and unique.
drop index concurrently if exists one_entry_per_correction;
create unique index concurrently one_entry_per_correction on ledger_entries (grant_id) where kind = 'correction';
