-- A batch has a few searches, but the planner takes every array for a hundred rows, and then reads whole tables of keys and
-- answers for them. Each search is looked up by an index.
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
