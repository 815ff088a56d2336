import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { helmTools, type KubernetesObject } from "./helm.ts";

/** Which module declares the kinds of an API group, and how it names them. */
const modules: Record<string, (kind: string) => { module: string; type: string }> = {
  v1: ofKubernetes("core/v1"),
  "apps/v1": ofKubernetes("apps/v1"),
  "autoscaling/v2": ofKubernetes("autoscaling/v2"),
  "batch/v1": ofKubernetes("batch/v1"),
  "networking.k8s.io/v1": ofKubernetes("networking/v1"),
  "policy/v1": ofKubernetes("policy/v1"),
  "keda.sh/v1alpha1": ofModels("keda"),
  "monitoring.coreos.com/v1": ofModels("prometheus-operator"),
};

function ofKubernetes(group: string) {
  return (kind: string) => ({ module: `kubernetes-types/${group}`, type: kind });
}

function ofModels(name: string) {
  return (kind: string) => ({
    module: `@kubernetes-models/${name}/${name === "keda" ? "keda.sh/v1alpha1" : "monitoring.coreos.com/v1"}/${kind}`,
    type: `I${kind}`,
  });
}

const options =
  "--ignoreConfig --noEmit --strict --skipLibCheck --module nodenext --target es2024 --types node --typeRoots".split(
    " ",
  );

/**
 * Checks each object against its type. The compiler reads a literal, for which an unknown field at any depth is an error.
 * @returns the messages of the compiler, each with the line of the object's JSON: none if all are right.
 */
export async function typeFaultsOf(objects: readonly KubernetesObject[]): Promise<string[]> {
  const folder = await mkdtemp(join(await helmTools(), "check-"));
  try {
    const statements = objects.map((object, at) => {
      const found = modules[object.apiVersion];
      if (found === undefined) throw new Error(`no types for ${object.apiVersion} ${object.kind}`);
      const { module, type } = found(object.kind);
      const literal = JSON.stringify(object, null, 1);
      return `import type { ${type} as T${at} } from "${module}";\nexport const o${at} = ${literal} satisfies T${at};\n`;
    });
    await writeFile(join(folder, "objects.ts"), statements.join(""));
    const compiler = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
    const types = fileURLToPath(new URL("../../node_modules/@types", import.meta.url));
    const failed = await promisify(execFile)(process.execPath, [compiler, ...options, types, "objects.ts"], {
      cwd: folder,
    }).then(
      () => "",
      (error: unknown) =>
        error instanceof Error && "stdout" in error ? String(error.stdout) || String(error) : String(error),
    );
    return failed.split("\n").filter((line) => line !== "");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
