-- What the billing page lists and counts. Charges are found by the ledger's own key and pay nothing for this index; of a
-- million entries it has only what is not a charge: given back, reversed and granted.

create index not_charges_by_organization on ledger_entries (organization_id, kind, version) include (amount_mils)
  where kind <> 'charge';
