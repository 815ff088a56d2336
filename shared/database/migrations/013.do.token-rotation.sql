-- A rotated token ends at a chosen time. Processes cannot write an expiry, so that none of them makes a token live longer.

-- Ends a token at a time, never later than its own expiry. Returns no row for a token that does not exist.
create function end_token(token text, at timestamptz) returns table (organization_id text, ended_at timestamptz)
language sql security definer set search_path = public, pg_temp as $$
  update tokens t set expires_at = least(t.expires_at, end_token.at) where t.id = end_token.token
  returning t.organization_id, t.expires_at
$$;
