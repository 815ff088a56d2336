import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { NameTable } from "../shared/gazetteer/name-table.ts";
import { importsOf, readSource, sources } from "./harness/assertions/sources.ts";
import { containerEnvironment, imageEnvironment } from "./harness/processes/container-heap.ts";

/** What is in the container image, and `npm run images:pin`, with a stand-in for Docker. */

const dockerfile = readSource("Dockerfile");
const [lastStage = ""] = dockerfile.split(/^(?=FROM )/m).slice(-1);
const manifest = z.object({
  devDependencies: z.object({ node: z.string() }),
  scripts: z.record(z.string(), z.string()),
});
const { devDependencies, scripts } = manifest.parse(JSON.parse(readSource("package.json")));

test("the image has the Node of the tests, and every base has an exact version", () => {
  const bases = [...dockerfile.matchAll(/^FROM ([^\s@]+)(?:@\S+)?(?: AS \w+)?$/gm)].map(([, image = ""]) => image);
  const [debian = ""] = /^debian:bookworm-\d{8}-slim$/.exec(bases.at(-1) ?? "") ?? [];
  expect(debian).not.toBe("");
  expect(bases).toEqual([`node:${devDependencies.node}-bookworm-slim`, debian, debian]);
});

test("the image has Node without npm, packages without tools, and no tests", () => {
  const copied = [...lastStage.matchAll(/^COPY (.+)$/gm)].map(([, what]) => what);
  expect(copied).toEqual([
    "--from=modules /usr/local/bin/node /usr/local/bin/",
    "--from=modules /serpmill/node_modules node_modules/",
    "--from=modules /serpmill/sbom.cdx.json ./",
    "--from=source /app ./",
  ]);
  expect(dockerfile).toContain("npm ci --omit=dev --omit=optional --ignore-scripts");
  const context = readSource(".dockerignore").split("\n");
  const sent = context.filter((line) => line.startsWith("!"));
  expect(sent).toEqual(["!package.json", "!package-lock.json", "!api", "!worker", "!commands", "!shared"]);
});

const { NODE_OPTIONS: nodeOptions, ...others } = imageEnvironment;
const variables = Object.entries(others).map((variable) => variable.join("="));

test("the image sets the size of Node's space for young objects and its helper threads, and tests can give a process the heap of its container", async () => {
  expect(lastStage).toContain(`\nENV NODE_OPTIONS="${nodeOptions}"\n`);
  for (const variable of variables) expect(lastStage).toContain(`\nENV ${variable}\n`);
  expect(/^x-serpmill:.*?^ {2}mem_limit: (\w+)$/ms.exec(readSource("docker-compose.yml"))?.[1]).toBe("512m");
  const print = ["--print", "v8.getHeapStatistics().heap_size_limit / 2 ** 20"];
  const { stdout } = await promisify(execFile)(process.execPath, print, { env: containerEnvironment });
  // Old objects, and three spaces for young ones.
  expect(Number(stdout)).toBe(256 + 3 * 32);
});

test("programs that the image compiles end without settings, read their code compiled when they start again, and the table of cities is kept", async () => {
  const [, run = ""] = /^RUN mkdir compiled .*?(?=^(?:#|[A-Z]))/ms.exec(lastStage)?.[0].match(/sh -c '([^']+)'/) ?? [];
  const folder = await mkdtemp(join(tmpdir(), "serpmill-compiled-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const env = { PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`, NODE_COMPILE_CACHE: folder };
  await promisify(execFile)("sh", ["-c", run.replaceAll("\\\n", "")], { env });
  for (const program of ["api/main.ts", "worker/main.ts", "commands/main.ts"]) {
    const again = { ...env, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
    const start = promisify(execFile)(process.execPath, [program, "--help"], { env: again, maxBuffer: 2 ** 26 });
    const { stderr } = await start.catch((ended: { stderr: string }) => ended);
    expect(stderr).toMatch(new RegExp(`V8 code cache for ESM \\S+/${program} was accepted`));
  }
  const kept = (await readdir(folder, { recursive: true })).filter((path) => path.includes("/tables-"));
  const sizes = await Promise.all(kept.map(async (path) => (await stat(join(folder, path))).size));
  expect(Math.max(...sizes)).toBeGreaterThan(NameTable.bytes);
});

test("nothing in the image imports the private servers of a developer's machine, which are not in it", () => {
  expect(readSource(".dockerignore").split("\n")).not.toContain("!local");
  const product = sources("{api,worker,commands,shared}/**/*.ts");
  const wrong = product.filter((file) => importsOf(file).some(({ target }) => target.startsWith("local/")));
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

test("npm scripts that start a program keep its compiled code for the next start", () => {
  for (const script of ["start", "dev", "migrate", "api", "worker", "admin"])
    expect(scripts[script]).toMatch(/^NODE_COMPILE_CACHE=node_modules/);
});

test("outside of a container npm scripts and units give API and worker the options of the image, the scripts also its heap", () => {
  for (const script of ["api", "worker"])
    expect(scripts[script]).toContain(
      `${variables.join(" ")} NODE_OPTIONS="${containerEnvironment.NODE_OPTIONS} $NODE_OPTIONS" exec node`,
    );
  for (const unit of ["api", "worker"])
    expect(readSource(`deploy/systemd/serpmill-${unit}@.service`)).toContain(
      ` ${variables.join(" ")} "NODE_OPTIONS=${nodeOptions}" `,
    );
});

describe("images:pin", () => {
  const files = ["Dockerfile", "docker-compose.yml", "deploy/quick.yml", "deploy/helm/values.yaml"];
  const program = "deploy/pin-images.sh";
  /** It tells the digests of what its file has in a line, after the image. */
  const docker = `#!/bin/sh
[ "$1 $2 $3 $4 $5" = "buildx imagetools inspect --format {{.Manifest.Digest}}" ] || exit 2
grep "^$6 " "$(dirname "$0")/digests" | cut -d " " -f 2 | grep . || { echo "ERROR: $6: not found" >&2; exit 1; }
`;
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "serpmill-images-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    for (const file of [...files, program]) await cp(file, join(folder, file));
    await writeFile(join(folder, "docker"), docker, { mode: 0o755 });
    await tell(hashOf);
  });

  /** Has the registries answer with these digests. */
  const tell = (digest: (image: string) => string, mirrored = (image: string) => image) =>
    writeFile(join(folder, "digests"), images.map((image) => `${mirrored(image)} ${digest(image)}\n`).join(""));

  function pin(...args: string[]): Promise<{ exitCode: unknown; stdout: string; stderr: string }> {
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    return new Promise((resolve) => {
      execFile("sh", [join(folder, program), ...args], { env }, (error, stdout, stderr) => {
        resolve({ exitCode: error?.code ?? 0, stdout, stderr });
      });
    });
  }

  const text = async () => {
    return (await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")))).join("");
  };
  const unpinned = files
    .map(readSource)
    .join("")
    .replace(/@sha256:\w+/g, "");
  const images = [...new Set([...unpinned.matchAll(/(?:^FROM|image:) (\S+:\S+)/gm)].map(([, image = ""]) => image))];
  const hashOf = (image: string) => `sha256:${createHash("sha256").update(image).digest("hex")}`;
  const pinnedBy = (digest: (image: string) => string) =>
    unpinned.replace(
      /((?:^FROM|image:) )(\S+:\S+)/gm,
      (_, key: string, image: string) => `${key}${image}@${digest(image)}`,
    );

  test("writes the digest behind every image that is not built here, and changes nothing else", async () => {
    expect(images).toContain("postgres:18");
    expect(images).toContain("prom/prometheus:v3.13.5");
    const { exitCode, stdout } = await pin();
    expect(exitCode).toBe(0);
    expect(stdout.trim().split("\n")).toEqual(images.map((image) => `${image}@${hashOf(image)}`));
    expect(await text()).toBe(pinnedBy(hashOf));
  });

  test("writes the present digests over older ones when it runs again", async () => {
    await pin();
    await tell((image) => hashOf(`newer ${image}`));
    expect(await pin()).toMatchObject({ exitCode: 0 });
    expect(await text()).toBe(pinnedBy((image) => hashOf(`newer ${image}`)));
  });

  test("asks a mirror for every image if one is given", async () => {
    await tell(hashOf, (image) => `mirror.example/${image.includes("/") ? "" : "library/"}${image}`);
    expect(await pin("mirror.example")).toMatchObject({ exitCode: 0 });
    expect(await text()).toBe(pinnedBy(hashOf));
  });

  test.each([
    ["lacks one image", ""],
    ["names half a digest", "sha256:ab"],
  ])("changes no file, says so, and exits with 1 if a registry %s", async (_fault, digest) => {
    const before = await text();
    await tell((image) => (image === "postgres:18" ? digest : hashOf(image)));
    const { exitCode, stdout, stderr } = await pin();
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("There is no digest of postgres:18, so nothing was changed.\n");
    expect(await text()).toBe(before);
  });
});
