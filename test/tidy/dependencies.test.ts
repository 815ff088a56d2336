import { expect, test } from "vitest";
import { z } from "zod";
import { readSource } from "../harness/assertions/sources.ts";

/** The lock file and the documentation agree with package.json, and every installed package has a licence that this project can live with. */

const entry = z.object({
  version: z.string().optional(),
  resolved: z.string().optional(),
  integrity: z.string().optional(),
  license: z.string().optional(),
  dev: z.boolean().optional(),
  dependencies: z.record(z.string(), z.string()).optional(),
  devDependencies: z.record(z.string(), z.string()).optional(),
});
const lock = z
  .object({ lockfileVersion: z.literal(3), packages: z.record(z.string(), entry) })
  .parse(JSON.parse(readSource("package-lock.json")));
const manifest = entry.parse(JSON.parse(readSource("package.json")));
const packages = Object.entries(lock.packages)
  .filter(([path]) => path !== "")
  .map(([path, one]) => ({ ...one, name: path.replace(/^.*node_modules\//, "") }));

const permissive = new Set([
  "MIT",
  "ISC",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "BlueOak-1.0.0",
  "Unicode-3.0",
  "(MIT OR CC0-1.0)",
]);
const whileDeveloping = new Set([
  ...permissive,
  "MIT OR Apache-2.0",
  "(AFL-2.1 OR BSD-3-Clause)",
  "Python-2.0",
  "PSF-2.0",
  "Unlicense",
  "MPL-2.0", // Weak copyleft, by file: tools that run here and are not shipped.
]);
/** Packages of the tools whose manifest names no licence, or only points to one. */
const readByHand: Record<string, string> = {
  "@modelcontextprotocol/inspector": "MIT and Apache-2.0, in its file LICENSE",
  "cpu-features": "MIT, in its file LICENSE",
  "compute-gcd": "MIT, in its file LICENSE",
  "compute-lcm": "MIT, in its file LICENSE",
  "validate.io-function": "MIT, in its file LICENSE",
  "validate.io-integer": "MIT, in its file LICENSE",
  "validate.io-integer-array": "MIT, in its file LICENSE",
  "validate.io-number": "MIT, in its file LICENSE",
  buildcheck: "MIT, in its file LICENSE",
  ssh2: "MIT, in its file LICENSE",
};

test("every package that production installs has a permissive licence", () => {
  const isPermissive = (name: string, license: string) =>
    permissive.has(license) || (name.startsWith("@fontsource") && license === "OFL-1.1");
  const others = packages.filter(({ name, dev, license = "none" }) => !dev && !isPermissive(name, license));
  expect(others.map(({ name, license }) => `${name}: ${license}`)).toEqual([]);
});

test("every package that only development installs has a licence from the list", () => {
  const unknown = packages.filter(
    ({ name, dev, license = "none" }) => dev && !whileDeveloping.has(license) && !readByHand[name],
  );
  expect(unknown.map(({ name, license }) => `${name}: ${license}`)).toEqual([]);
  const names = new Set(packages.map(({ name }) => name));
  expect(Object.keys(readByHand).filter((name) => !names.has(name))).toEqual([]);
});

test("the lock file has the versions of package.json, and names no registry", () => {
  const root = lock.packages[""];
  expect(root?.dependencies).toEqual(manifest.dependencies);
  expect(root?.devDependencies).toEqual(manifest.devDependencies);
  // Without addresses, npm installs from the registry that the machine is configured for.
  expect(packages.filter(({ resolved }) => resolved !== undefined).map(({ name }) => name)).toEqual([]);
  expect(packages.filter(({ version }) => !/^\d+\.\d+\.\d+/.test(version ?? "")).map(({ name }) => name)).toEqual([]);
});

test("hashes in the lock file are SHA-512", () => {
  const weak = packages.filter(({ integrity }) => integrity !== undefined && !/^sha512-[\w+/]{86}==$/.test(integrity));
  expect(weak.map(({ name }) => name)).toEqual([]);
});

test("the documentation says of each package that production installs what it does and why it is one, and of no other", () => {
  const [, section = ""] = /^## Runtime dependencies\n(.*?)^## /ms.exec(readSource("docs/dependencies.md")) ?? [];
  const rows = [...section.matchAll(/^\| `(.+?)` \|(.+)\|(.+)\|$/gm)];
  expect(rows.map(([, name]) => name)).toEqual(Object.keys(manifest.dependencies ?? {}).toSorted());
  expect(rows.filter(([, , does, why]) => !does?.trim() || !why?.trim())).toEqual([]);
});
