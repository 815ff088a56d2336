import { importsOf, type Source, sources } from "./harness/assertions/sources.ts";

/**
 * Which test file belongs to which project. It follows from what the file imports, so most new files need no entry here.
 *
 * - `unit`: files that start no process. They need no Postgres and take seconds.
 * - `integration`: files that can start a process: Postgres, Redis, an API, a worker, a command.
 * - `long`: files that start Chromium, and those below, which take longer than a developer waits for a test.
 */
export type ProjectName = "unit" | "integration" | "long";

/** Every process that tests start goes through one of these. */
const startsProcesses = new Set(["local/guarded-process.ts", "test/harness/processes/run.ts"]);

const startsChromium = "test/harness/clients/browser.ts";

/** Files that start no server and are still too slow for `unit`, each with its reason. */
const slow: Record<string, string> = {
  "test/api/slow-clients.test.ts": "waits until the server closes connections that send or take nothing",
  "test/api/mcp/hand-over.test.ts": "reads many answers of 32 MiB",
  "test/api/docs/lint.test.ts": "loads a linter and its rules",
  "test/api/pipelining.test.ts": "fills the buffers of connections",
  "test/api/refused-requests.test.ts": "fills the buffers of connections",
  "test/api/topups/begin-top-up.test.ts": "loads Stripe's library and waits for its time-outs",
  "test/api/unsent-answers.test.ts": "fills the buffers of connections",
  "test/bench/load/generate.test.ts": "sends load for seconds",
  "test/clients/python.test.ts": "runs programs in Python",
  "test/clients/python-package.test.ts": "builds a wheel and installs it",
  "test/clients/typescript-package.test.ts": "builds an npm package and installs it",
  "test/compose-secrets.test.ts": "runs the script that writes them",
  "test/faults/mutants/mutants.test.ts": "reads the whole product, and plants every bug",
  "test/images.test.ts": "runs the commands of the image's build",
  "test/shared/tracing/tracing.test.ts": "waits until exports are given up",
  "test/tidy/loading.test.ts": "loads every file of the product",
  "test/upgrading.test.ts": "runs the script of an upgrade in each case",
  "test/worker/providers/policies/http.test.ts": "opens many connections",
};

/** Further files of `long`, each with its reason. */
const long: Record<string, string> = {
  "test/abuse/on-own-stacks.test.ts": "starts a service for each attack, and waits for slow providers",
  "test/api/auto-topups/crashes.test.ts": "kills processes at each step of a payment",
  "test/bench/throughput.test.ts": "runs benchmarks",
  "test/clients/runtimes.test.ts": "installs Deno and Bun, and makes every call of the conformance file on them",
  "test/deploy-rules.test.ts": "replays days of metrics, if promtool is there",
  "test/drill/failovers/small-failover.test.ts": "fails a Redis over under load, as the drill does",
  "test/faults/crash-points/crash-points.test.ts":
    "kills a process at steps of a search and waits until others have ended it",
  "test/faults/mutants/compiling-mutants.test.ts": "compiles every mutant",
  "test/faults/scenarios/takeovers.test.ts": "waits until another worker or provider takes over",
  "test/helm/objects.test.ts": "downloads Helm, and compiles what it renders",
  "test/helm/processes.test.ts": "downloads Helm, and starts what it renders",
  "test/journeys/containers.test.ts": "builds images, if Docker is there",
  "test/journeys/kills.test.ts": "kills and freezes processes and waits until others take over",
  "test/journeys/last-release.test.ts": "installs the last release and runs it beside this one",
  "test/journeys/rotation.test.ts": "replaces all processes for each secret",
  "test/journeys/upgrade.test.ts": "replaces every process under load, behind the proxy",
};

/** The test files of each project, as paths from the root of the checkout. @throws if a file above is gone. */
export function testFilesByProject(): Record<ProjectName, string[]> {
  const files = sources("{api,worker,commands,local,shared,test}/**/*.ts");
  const importedBy = new Map(files.map((file) => [file.path, filesImportedBy(file)]));
  const gone = [...Object.keys(slow), ...Object.keys(long)].filter((path) => !importedBy.has(path));
  if (gone.length > 0) throw new Error(`test/projects.ts names files that are gone: ${gone.join(", ")}`);
  const byProject: Record<ProjectName, string[]> = { unit: [], integration: [], long: [] };
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
  if (long[path]) return "long";
  if (slow[path]) return "integration";
  const reached = new Set([path]);
  for (const file of reached) for (const target of importedBy.get(file) ?? []) reached.add(target);
  if (reached.has(startsChromium)) return "long";
  return [...startsProcesses].some((file) => reached.has(file)) ? "integration" : "unit";
}
