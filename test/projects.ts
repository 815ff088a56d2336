import { importsOf, type Source, sources } from "./harness/assertions/sources.ts";

/**
 * Which test file belongs to which project. It follows from what the file imports, so a new file needs no entry here.
 *
 * - `faults`: everything in test/faults and test/abuse.
 * - `integration`: files that can start a process: Postgres, Redis, an API, a worker, a command.
 * - `unit`: the rest. They start no process, so the project needs no Postgres and takes seconds.
 */
export type ProjectName = "unit" | "integration" | "faults";

/** Every process that tests start goes through one of these. */
const startsProcesses = new Set(["local/guarded-process.ts", "test/harness/processes/run.ts"]);

/** Files that start no process and are still too slow for `unit`, each with its reason. */
const slow: Record<string, string> = {
  "test/api/slow-clients.test.ts": "waits until the server closes connections that send or take nothing",
  "test/deploy-rules.test.ts": "replays days of metrics, if promtool is there",
  "test/api/mcp/hand-over.test.ts": "reads many answers of 32 MiB",
};

/** The test files of each project, as paths from the root of the checkout. */
export function testFilesByProject(): Record<ProjectName, string[]> {
  const files = sources("{api,worker,commands,local,shared,test}/**/*.ts");
  const importedBy = new Map(files.map((file) => [file.path, filesImportedBy(file)]));
  const byProject: Record<ProjectName, string[]> = { unit: [], integration: [], faults: [] };
  for (const { path } of files.filter(({ path: name }) => name.endsWith(".test.ts"))) {
    byProject[projectOf(path, importedBy)].push(path);
  }
  return byProject;
}

const filesImportedBy = (file: Source) =>
  importsOf(file)
    .filter(({ isFile, typeOnly }) => isFile && !typeOnly)
    .map(({ target }) => target);

function projectOf(path: string, importedBy: ReadonlyMap<string, readonly string[]>): ProjectName {
  if (/^test\/(faults|abuse)\//.test(path)) return "faults";
  if (slow[path]) return "integration";
  const reached = new Set([path]);
  for (const file of reached) for (const target of importedBy.get(file) ?? []) reached.add(target);
  return [...startsProcesses].some((file) => reached.has(file)) ? "integration" : "unit";
}
