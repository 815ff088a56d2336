import { execFile, spawnSync } from "node:child_process";
import { cp, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApiDocument } from "../../api/docs/openapi-document.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";

/** The wheel of the Python client, as a caller installs it: built and installed without a network. */

const checkout = fileURLToPath(new URL("../../", import.meta.url));
const checker = fileURLToPath(new URL("../../node_modules/pyright/index.js", import.meta.url));
const run = promisify(execFile);
const needed =
  "import setuptools, wheel, venv, pip, sys; pips = [int(n) for n in pip.__version__.split('.')[:2]]; sys.exit(sys.version_info < (3, 10) or pips < [22, 3])";
// Debian's packages python3-pip and python3-wheel belong to its own Python.
const found = ["python3", "/usr/bin/python3"].find((path) => spawnSync(path, ["-c", needed]).status === 0);

describe.skipIf(found === undefined)("the wheel (needs Python 3.10 with setuptools, wheel, venv and pip 22.3)", () => {
  let folder: GuardedFolder;
  let installed: string;
  beforeAll(async () => {
    folder = await GuardedFolder.create("serpmill-wheel-");
    const python = found ?? "python3";
    const source = join(folder.path, "source");
    const wheels = join(folder.path, "wheels");
    const environment = join(folder.path, "environment");
    await cp(join(checkout, "clients/python"), source, { recursive: true });
    await run(python, ["-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", wheels, source]);
    await run(python, ["-m", "venv", "--without-pip", environment]);
    const [wheel = ""] = await readdir(wheels);
    installed = join(environment, "bin/python");
    await run(python, ["-m", "pip", "--python", installed, "install", "--no-index", join(wheels, wheel)]);
  });
  afterAll(() => folder.remove());

  test("has the code, its types, the licence and the version of the API, and neither tests nor dependencies", async () => {
    const list =
      "import importlib.metadata as m, json; d = m.distribution('serpmill'); print(json.dumps([d.version, d.requires, [str(f) for f in d.files]]))";
    const { stdout } = await run(installed, ["-c", list]);
    const [version, requires, files] = JSON.parse(stdout) as [string, unknown, string[]];
    const { info } = openApiDocument();
    expect({ version, requires }).toEqual({ version: (info as { version: string }).version, requires: null });
    const own = files.filter((path) => !path.includes("__pycache__"));
    expect(own.filter((path) => !/^serpmill(-[\d.]+\.dist-info)?\/[\w.]+$/.test(path))).toEqual([]);
    expect(own).toContain("serpmill/py.typed");
    expect(own.some((path) => path.endsWith("/LICENSE"))).toBe(true);
  });

  test("lets a program make both clients", async () => {
    const program =
      "from serpmill import Serpmill, AsyncSerpmill; [c(token='smk_a', base_url='http://127.0.0.1:1') for c in (Serpmill, AsyncSerpmill)]; print('made')";
    const { stdout, stderr } = await run(installed, ["-c", program]);
    expect({ stdout, stderr }).toEqual({ stdout: "made\n", stderr: "" });
  });

  const typed = `
from serpmill import AsyncSerpmill, Cancellation, Failed, OutOfCreditsError, Serpmill

client = Serpmill()

def first() -> str:
    try:
        answer = client.search({"keyword": "tea", "device": "mobile"}, deadline_s=60)
        compact = client.search({"keyword": "tea", "format": "compact"})
        print(compact["results"][0]["title"], client.usage(max_retries=1)["plan"])
        print(client.search({"keyword": "tea"}, cancellation=Cancellation()), client.usage(cancellation=Cancellation()))
        outcomes = client.search_many([{"keyword": "tea"}], max_retries=1, deadline_s=60)
        for outcome in outcomes:
            print(outcome.answer["totalResultsCount"] if outcome.error is None else outcome.error.code)
            print(outcome.error.code if isinstance(outcome, Failed) else outcome.answer["query"], outcome.progress.done)
        outcomes.close()
        return answer["results"][0]["domain"]
    except OutOfCreditsError as error:
        return error.details.get("renewsAt", error.details["topupUrl"])

async def rank() -> int:
    await AsyncSerpmill().search_many([{"keyword": "tea"}]).aclose()
    return (await AsyncSerpmill(deadline_s=60).search({"keyword": "tea"}, idempotency_key="a"))["results"][0]["rank"]
`;

  test("its types pass a strict checker, which refuses a field that an answer or a detail that an error does not have", async () => {
    const check = async (program: string) => {
      await writeFile(join(folder.path, "typed.py"), program);
      await writeFile(
        join(folder.path, "pyrightconfig.json"),
        '{ "typeCheckingMode": "strict", "include": ["typed.py"] }',
      );
      const command = [checker, "--pythonversion", "3.10", "--pythonpath", installed, "-p", folder.path];
      const { stdout } = await run(process.execPath, command).catch((error: Error & { stdout?: string }) => ({
        stdout: error.stdout ?? error.message, // The checker reports to its output.
      }));
      return stdout;
    };
    expect(await check(typed)).toMatch(/^0 errors/);
    const wrong = await check(typed.replace('["title"]', '["rank"]').replace('"topupUrl"', '"retryAfterMs"'));
    for (const key of ["rank", "retryAfterMs"]) expect(wrong).toContain(`"${key}" is not a defined key`);
  });
});

test("the Python client needs nothing that Python 3.10 does not have", async () => {
  // The checker knows the version of each name of the standard library.
  const command = [checker, "--pythonversion", "3.10", "src"];
  const { stdout } = await run(process.execPath, command, { cwd: join(checkout, "clients/python") });
  expect(stdout).toMatch(/^0 errors/m);
});
