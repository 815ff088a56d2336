import { afterAll, expect, test } from "vitest";
import { sqlStateOf } from "../../../shared/database/transient-errors.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

/** Statements that meet a migration, which changes tables, functions and privileges for a moment. */

const opened = await openFreshDatabase(afterAll, { sizeMax: 1 });

/** A function that Postgres refuses so many times with this SQLSTATE. */
async function refusedTimes(name: string, { state, times }: { state: string; times: number }): Promise<void> {
  await asOwner(
    opened.url,
    `create sequence ${name}_calls;
       create function ${name}() returns bigint language plpgsql security definer as $$
       declare call bigint := nextval('${name}_calls');
       begin
         if call <= ${times} then raise 'refused' using errcode = '${state}'; end if;
         return call;
       end $$`,
  );
}

test.each([
  ["a missing privilege", "42501"],
  ["a deadlock", "40P01"],
  ["a change of what it reads", "XX000"],
])("a statement that is refused for %s is repeated until Postgres takes it", async (_, state) => {
  const name = `refused_${state.toLowerCase()}`;
  await refusedTimes(name, { state, times: 2 });
  expect((await opened.database.query(`select ${name}() as call`)).rows).toEqual([{ call: 3 }]);
});

test("a statement that stays refused fails after four attempts, and one that is wrong after the first", async () => {
  await refusedTimes("always", { state: "42501", times: 100 });
  await refusedTimes("wrong", { state: "22012", times: 1 });
  const stateOf = (sql: string) => opened.database.query(sql).catch((error: unknown) => sqlStateOf(error));
  expect(await stateOf("select always()")).toBe("42501");
  expect(await stateOf("select wrong()")).toBe("22012");
  const calls = await asOwner(
    opened.url,
    "select a.last_value as always, w.last_value as wrong from always_calls a, wrong_calls w",
  );
  expect(calls.rows).toEqual([{ always: "4", wrong: "1" }]);
});
