-- What a token may do, and a name by which people know it. Tokens that exist may do everything, as before, and so may those
-- that the last release issues.

alter table tokens
  add column name text,
  add column scopes text[] not null default '{search,usage,billing}',
  -- Not validated, so that no search waits for a scan: the rows that exist have the defaults.
  add constraint token_name_is_not_blank check (length(trim(name)) between 1 and 100) not valid,
  add constraint token_has_known_scopes
    check (cardinality(scopes) > 0 and scopes <@ array['search', 'usage', 'billing']) not valid;
