import { expect, test } from "vitest";
import { importsOf, places, type Source, sources } from "../harness/assertions/sources.ts";

/** What may import what, beyond the parts api, worker, commands, local and shared. */

const all = sources("{api,worker,commands,local,shared,test}/**/*.ts", "*.ts");
const importedBy = new Map(all.map((source) => [source.path, importsOf(source)]));
const filesOf = (path: string) => (importedBy.get(path) ?? []).filter(({ isFile }) => isFile);

/** The ways from a name back to itself. */
function circlesIn(importsFrom: ReadonlyMap<string, Iterable<string>>): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const follow = (name: string, way: readonly string[]) => {
    if (way.includes(name)) circles.push([...way.slice(way.indexOf(name)), name].join(" -> "));
    if (done.has(name) || way.includes(name)) return;
    for (const target of importsFrom.get(name) ?? []) follow(target, [...way, name]);
    done.add(name);
  };
  for (const name of importsFrom.keys()) follow(name, []);
  return circles;
}

test("no file imports itself through others, not even for its types", () => {
  const targets = new Map(all.map(({ path }) => [path, filesOf(path).map(({ target }) => target)]));
  expect(circlesIn(targets)).toEqual([]);
});

/** `api`, or `shared/credits`; a file such as `shared/config.ts` belongs to the folder of its name. */
const roomOf = (path: string) =>
  (path.startsWith("shared/") ? path.split("/").slice(0, 2).join("/") : (path.split("/")[0] ?? "")).replace(
    /\.ts$/,
    "",
  );

test("imports between rooms lead downwards: no room imports itself through others", () => {
  const targets = new Map<string, Set<string>>();
  for (const { path } of all.filter((source) => !source.path.startsWith("test/"))) {
    const own = roomOf(path);
    const others = filesOf(path).map(({ target }) => roomOf(target));
    targets.set(own, new Set([...(targets.get(own) ?? []), ...others.filter((room) => room !== own)]));
  }
  expect(circlesIn(targets)).toEqual([]);
});

test("three files know BullMQ: the API's queue, the worker's loop and its worker, apart from the bare queue that the service is compared with", () => {
  const importers = all.filter(({ path }) => importedBy.get(path)?.some(({ target }) => target === "bullmq"));
  const compared = importers.filter(({ path }) => !path.startsWith("test/bench/contestants/bullmq-"));
  expect(compared.map(({ path }) => path)).toEqual([
    "shared/queue/search-queue.ts",
    "worker/job-loop.ts",
    "worker/manual-worker.ts",
  ]);
});

test("API and worker load Node's HTTP without its WebSocket client", () => {
  const importers = all
    .filter(({ path }) => /^(api|worker|shared)\//.test(path))
    .filter(({ path }) => importedBy.get(path)?.some(({ target, typeOnly }) => target === "node:http" && !typeOnly));
  expect(importers.map(({ path }) => path)).toEqual([]);
});

test("api/http knows HTTP, and none of the API's subjects", () => {
  const wrong = all
    .filter(({ path }) => path.startsWith("api/http/"))
    .flatMap(({ path }) => filesOf(path).map(({ target }) => ({ path, target })))
    .filter(({ target }) => target.startsWith("api/") && !target.startsWith("api/http/"));
  expect(wrong).toEqual([]);
});

test("the worker's searches have no SQL of their own: statements stand beside the table's owner", () => {
  const worker = all.filter(({ path }) => path.startsWith("worker/") && !path.startsWith("worker/locations/"));
  const sql = /\b(select\s+[\w*(].*\bfrom|insert into|delete from|update \w+ set)\b/i;
  const withoutComments = ({ lines }: Source) => lines.map((line) => line.replace(/^\s*(\/\/|\*|\/\*).*/, ""));
  expect(places(worker, sql, withoutComments)).toEqual([]);
});

test("only the private servers of one machine start programs", () => {
  const product = sources("{api,worker,commands,shared}/**/*.ts");
  const starters = new Set(["node:child_process", "node:vm", "node:cluster"]);
  const starting = product.filter(({ path }) => importedBy.get(path)?.some(({ target }) => starters.has(target)));
  expect(starting.map(({ path }) => path)).toEqual([]);
});

test("statements take values as parameters: only these constants of ours are put into their text", () => {
  const constants = new Set([
    "planColumns",
    "columns",
    "checkedDay",
    "presentDay",
    "refundHour",
    'ofHour("r")',
    "isValid",
    "waitingBriefly",
    "condition",
    "changes[what]",
    "conditions[filter]",
    "entryColumns",
    "kinds",
    "loggedColumns",
    "namesakesMax",
    "neighborsMax",
    "parameter",
    "refundColumns",
    "sameMax",
  ]);
  const isStatement =
    /`[^`]*\b(?:select\s+[\w*(,. ]+\s+from|insert into|delete from|update \w+ (?:as \w+ )?set)\b[^`]*`/g;
  // The migration, which the operator runs, gives the processes' login its name and time-outs.
  const files = sources("{api,worker,commands,shared}/**/*.ts").filter(
    ({ path }) => path !== "shared/database/process-login.ts",
  );
  const others = files.flatMap(({ path, text }) =>
    [...text.matchAll(isStatement)]
      .flatMap(([statement]) => [...statement.matchAll(/\$\{([^}]*)\}/g)].map(([, name = ""]) => name))
      .filter((name) => !constants.has(name))
      .map((name) => `${path}: ${name}`),
  );
  expect(others).toEqual([]);
});

test("words that were private to this code do not come back as exported names", () => {
  const isPrivate =
    /^(line|visit|place|errand|lane|caretaker|askOnce|askForAll|asker|workforce|rounds|claim|unclaim|abandon|hangUp|fate)$/i;
  const exported = /^export (?:async )?(?:const|function\*?|class|interface|type|enum) (\w+)/;
  const found = all.flatMap(({ path, lines }) =>
    lines.flatMap((line, at) => (isPrivate.test(exported.exec(line)?.[1] ?? "") ? [`${path}:${at + 1}: ${line}`] : [])),
  );
  expect(found).toEqual([]);
});
