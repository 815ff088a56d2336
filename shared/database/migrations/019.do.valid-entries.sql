-- The rules of 017 hold for the entries that exist, too. Reading them makes no search wait.
alter table ledger_entries
  validate constraint entry_kind_is_known,
  validate constraint only_charges_and_corrections_lower_a_balance,
  validate constraint credit_has_a_grant_id_and_a_search_a_request_id,
  validate constraint whoever_gives_back_or_corrects_says_why;
