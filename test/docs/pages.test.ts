import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { exists, readSource, sources } from "../harness/assertions/sources.ts";
import { anchorsOf, inlineCode, type Page, page, pages } from "./markdown.ts";

/** Every page: its form, its links, and the names that it uses. Each failure names the page. */

const readmeLinesMax = 200;

test("the README fits on a few screens", () => {
  expect(page("README.md").text.trimEnd().split("\n").length).toBeLessThanOrEqual(readmeLinesMax);
});

test("every page says what it is for in its first sentence", () => {
  const purpose = /^# \S.*\n\n(?![-|#>`*\d])[A-Z][\s\S]{40,}?[.:]\s/;
  expect(pages.filter(({ text }) => !purpose.test(text)).map(({ path }) => path)).toEqual([]);
});

test("the index of the documentation lists every page", () => {
  const listed = new Set(linksOf(page("docs/README.md")).map(({ target }) => target));
  const missing = pages.map(({ path }) => path).filter((path) => path.startsWith("docs/") && !listed.has(path));
  expect(missing).toEqual(["docs/README.md"]);
});

test("every link leads to a file that exists, and to a heading in it", () => {
  const broken = pages.flatMap((from) =>
    linksOf(from)
      .filter(({ target, anchor }) => !exists(target) || (anchor !== "" && !anchorsOf(page(target)).has(anchor)))
      .map(({ link }) => `${from.path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

/** Links within the checkout; `target` is a path from its root. */
function linksOf(from: Page): { link: string; target: string; anchor: string }[] {
  return [...from.prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = "", anchor = ""] = link.split("#");
      return { link, target: path === "" ? from.path : join(dirname(from.path), path), anchor };
    });
}

test("every file or folder that a page names exists", () => {
  const names = new Set(sources("{api,worker,commands,local,shared,test}/**/*", "*").map(({ path }) => basename(path)));
  const roots = new Set(readdirSync(".").filter((name) => !name.startsWith(".")));
  const isOurs = (code: string) =>
    /^[\w.@*/-]+$/.test(code) && code.includes("/") && roots.has(code.split("/")[0] ?? "");
  const isFile = (code: string) => /^[\w.-]+\.(ts|md|json|yml|lua|sql)$/.test(code);
  // Files on the reader's machine, in other projects, in Grafana, or in the container image.
  const others = new Set(["claude_desktop_config.json", "docker-compose.override.yml", "sbom.cdx.json"]);
  const missing = pages.flatMap(({ path, ...rest }) =>
    inlineCode({ path, ...rest })
      .filter((code) => (isOurs(code) ? !exists(code) : isFile(code) && !others.has(code) && !names.has(code)))
      .map((code) => `${path}: ${code}`),
  );
  expect(missing).toEqual([]);
});

const manifest = z.object({ scripts: z.record(z.string(), z.string()) });
const { scripts } = manifest.parse(JSON.parse(readSource("package.json")));

test("every npm script that a page names exists", () => {
  const missing = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/\bnpm (?:run (?:--silent )?([\w:]+)|(start|test)\b)/g)]
      .map(([, script, short]) => script ?? short ?? "")
      .filter((script) => script !== "X" && scripts[script] === undefined)
      .map((script) => `${path}: ${script}`),
  );
  expect(missing).toEqual([]);
});

test("every script of package.json is documented", () => {
  const all = pages.map(({ text }) => text).join("\n");
  const isNamed = (script: string) => new RegExp(`\\bnpm (run (--silent )?)?${script}\\b`).test(all);
  expect(Object.keys(scripts).filter((script) => !isNamed(script))).toEqual([]);
});

test("every test file and folder that a command names exists", () => {
  const missing = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/\bvitest run ((?:test[\w./-]*\s?)+)/g)]
      .flatMap(([, files = ""]) => files.trim().split(" "))
      .filter((file) => !exists(file))
      .map((file) => `${path}: ${file}`),
  );
  expect(missing).toEqual([]);
});

test("every command and scenario of npm run faults and npm run bench that a page names exists", () => {
  const known: Record<string, Set<string>> = {
    faults: declared("test/faults/main.ts", /command\("([\w-]+)"/g),
    bench: declared("test/bench/main.ts", /command\("([\w-]+)"/g),
  };
  const scenarios = declared("test/faults/scenarios/*.ts", /^ {2}name: "([\w-]+)"/gm);
  // The changelog also tells what was renamed.
  const current = pages.filter(({ path }) => path !== "CHANGELOG.md");
  const missing = current.flatMap(({ path, text }) =>
    [...text.matchAll(/npm run (faults|bench) -- ([a-z-]+)(?: ([a-z-]+))?/g)].flatMap(
      ([call, program = "", command = "", scenario]) => {
        const found = known[program]?.has(command) && (command !== "scenarios" || !scenario || scenarios.has(scenario));
        return found ? [] : [`${path}: ${call}`];
      },
    ),
  );
  expect(missing).toEqual([]);
});

function declared(files: string, pattern: RegExp): Set<string> {
  return new Set(sources(files).flatMap(({ text }) => [...text.matchAll(pattern)].map(([, name = ""]) => name)));
}

test("pages name the actor", () => {
  const vague = /\b(nobody|somebody|anybody|everybody|whoever|whomever)\b/gi;
  const found = pages.flatMap(({ path, prose }) => [...prose.matchAll(vague)].map(([word]) => `${path}: ${word}`));
  expect(found).toEqual([]);
});
