import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { readSource } from "../harness/assertions/sources.ts";
import { page } from "./markdown.ts";

/** The operator's own settings for docker compose, as docs/operating/deploying.md shows them. */

const composeFile = z.object({
  services: z.record(
    z.string(),
    z.looseObject({ command: z.array(z.string()).optional(), volumes: z.array(z.string()).default([]) }),
  ),
});
const shipped = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true })).services;
const block = page("docs/operating/deploying.md").blocks.find(({ info }) => info === "yaml");
const own = composeFile.parse(parse(block?.text ?? "")).services;

test("an upgrade leaves the operator's own compose file alone", () => {
  expect(readSource(".gitignore").split("\n")).toContain("docker-compose.override.yml");
});

test("the example changes services of the compose file, and replaces mounts that they have", () => {
  expect(Object.keys(shipped)).toEqual(expect.arrayContaining(Object.keys(own)));
  const targets = (volumes: readonly string[]) => volumes.map((volume) => volume.split(":")[1] ?? "");
  for (const [name, { volumes }] of Object.entries(own)) {
    const mounted = targets(shipped[name]?.volumes ?? []);
    const isWithin = (target: string) => mounted.some((one) => `${target}/`.startsWith(`${one}/`));
    expect(targets(volumes).filter((target) => !isWithin(target))).toEqual([]);
  }
});

test("the example starts Redis as the compose file does, but for its memory", () => {
  const withoutSize = (command: readonly string[] = []) =>
    command.toSpliced(command.indexOf("--maxmemory") + 1, 1, "SIZE");
  expect(withoutSize(own["redis"]?.command)).toEqual(withoutSize(shipped["redis"]?.command));
});
