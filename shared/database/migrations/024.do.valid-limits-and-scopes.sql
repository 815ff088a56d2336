-- The rules of 010 and 011 hold for the organizations and tokens that exist, too. Reading them makes no search wait.
alter table organizations
  validate constraint limits_are_never_negative,
  validate constraint a_limited_organization_counts_its_spending;
alter table tokens
  validate constraint token_name_is_not_blank,
  validate constraint token_has_known_scopes,
  validate constraint token_limits_are_never_negative,
  validate constraint a_limited_token_counts_its_spending;
