-- Earlier answers to the same query, so that a person can compare.

-- The last search before this one whose answer to its query can be read, of any token or of one. An answer that the organization keeps
-- is found among the 1,000 newest of the query. One under a key needs the same domain, types and format too, because it is shown as its
-- caller got it, and is found among 10,000 rows of the log of the last 25 hours: older keys have expired. `key_hash` is null for the
-- first kind. A row of the log says which token searched.
create function previous_answer(organization text, asked_at timestamptz, of_request text, of_fingerprint text, only_token text)
returns table (request_id text, key_hash text)
language sql stable security definer set search_path = public, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
  (select a.request_id, a.key_hash from (
    (select n.at, n.request_id, null as key_hash from (
      select k.at, k.request_id, k.fetched_at from kept_answers k join organizations o on o.id = k.organization_id
      where k.organization_id = organization and k.fingerprint = of_fingerprint and k.fetched_at < asked_at
        and k.at < asked_at and k.at >= now() - make_interval(days => o.kept_answer_days)
      order by k.fetched_at desc limit 1000) n
    -- `case` asks the ledger last: that costs most.
    where case when only_token is null or exists (
      select from search_log l
      where l.organization_id = organization and l.at = n.at and l.request_id = n.request_id and l.token_id = only_token
    ) then charge_stands(organization, n.request_id) end
    order by n.fetched_at desc limit 1)
    union all
    (select l.at, l.request_id, l.key_hash from search_log s
    cross join lateral (
      select * from search_log l
      where l.organization_id = organization and l.at <= asked_at and (l.at, l.request_id) < (asked_at, of_request)
        and l.at >= now() - interval '25 hours'
      order by l.at desc, l.request_id desc limit 10000) l
    where s.organization_id = organization and s.at = asked_at and s.request_id = of_request
      and (l.keyword, l.location, l.language, l.device, l.depth) = (s.keyword, s.location, s.language, s.device, s.depth)
      and (l.target_domain, l.types, l.format) is not distinct from (s.target_domain, s.types, s.format)
      and (only_token is null or l.token_id = only_token)
      and exists (
        select from key_payments p
        where p.organization_id = organization and p.key_hash = l.key_hash and p.request_id = l.request_id and p.expires_at > now())
    order by l.at desc, l.request_id desc limit 1)) a
  order by a.at desc, a.request_id desc limit 1)
$$;
