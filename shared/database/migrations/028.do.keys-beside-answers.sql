-- A key that has paid is kept in the row of its answer, in the ring of days: whole days are emptied, and no key is deleted row by row.

-- Deleting 1,000 keys a second did not keep up with searches, and more would have left as many dead rows to the vacuum.
-- Both are null in the answers of earlier keys, which are in the table `paid_keys`.
alter table answers
  add column fingerprint text collate "C",
  add column expires_at timestamptz,
  alter column body drop not null;

-- The keys that have paid, some of them expired. A key pays once within 24 hours: who charges has locked its organization before.
create view key_payments as
select organization_id, key_hash, fingerprint, request_id, expires_at, answer_slot(expires_at - interval '24 hours') as slot
from paid_keys
union all
select organization_id, key_hash, fingerprint, request_id, expires_at, slot
from answers where slot in (answer_slot(now()), answer_slot(now() - interval '1 day')) and expires_at is not null;
