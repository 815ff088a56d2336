import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startLoggedProcess } from "../../local/logged-process.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";

const guarded = await GuardedFolder.create("serpmill-logged-");
const folder = guarded.path;
afterAll(() => guarded.remove());

/** A program that logs one line and runs until it is stopped. `write` changes its file. */
async function start(name: string, line: string, isWatched: boolean) {
  const sources = join(folder, name);
  await mkdir(sources);
  const mainFile = join(sources, "main.ts");
  const write = (text: string) => writeFile(mainFile, `console.log('${text}'); setInterval(() => {}, 1000);`);
  await write(line);
  const shown: string[] = [];
  const started = await startLoggedProcess({
    name,
    mainFile,
    environment: {},
    logPath: join(folder, `${name}.log`),
    ...(isWatched && { watched: [sources], format: (text: string) => `[${text}]` }),
    say: (text) => shown.push(text),
  });
  return { ...started, shown, write };
}

test("a watched process restarts when a file changes, and its lines are shown as formatted", async () => {
  const { shown, write, stop } = await start("watched", "before", true);
  await eventually(async () => shown.length > 0);
  expect(shown).toEqual(["watched: [before]"]);
  await write("after");
  await eventually(async () => shown.includes("watched: [after]"));
  await stop();
});

test.each([
  {
    name: "warning",
    line: '{"level":40,"msg":"Redis is slow","err":{"message":"no answer"},"requestId":"req_1"}',
    says: "Redis is slow: no answer",
  },
  {
    name: "request",
    line: '{"level":40,"requestId":"req_1","route":"/v1/serp/search","status":502,"ms":18.8,"msg":"request"}',
    says: "request: /v1/serp/search 502 req_1",
  },
])("a $name of a process that is not watched is shown by what it says, and the log has it whole", async (warning) => {
  const { name, line, says } = warning;
  const { shown, stop, lastLines } = await start(name, line, false);
  await eventually(async () => shown.length > 0);
  expect(shown).toEqual([says]);
  expect(lastLines).toEqual([line]);
  await stop();
});

test("of a process that is not watched, only warnings and errors are shown", async () => {
  const { shown, stop, lastLines } = await start("plain", '{"level":30,"msg":"started"}', false);
  await eventually(async () => lastLines.length > 0);
  expect(shown).toEqual([]);
  await stop();
});
