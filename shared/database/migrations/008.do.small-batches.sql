-- The decisions look each search up by an index. Their plans are kept by every connection. One that was made while the tables
-- were small, as on a new installation, read all keys and all answers for each batch, until Postgres analyzed the tables.
do $$
declare
  decider regprocedure;
begin
  for decider in
    select oid::regprocedure from pg_proc where pronamespace = 'public'::regnamespace
      and proname in ('settle', 'settle_with_answers')
  loop
    execute format('alter function %s set enable_seqscan = off', decider);
    execute format('alter function %s set enable_hashjoin = off', decider);
    execute format('alter function %s set enable_mergejoin = off', decider);
  end loop;
end $$;
