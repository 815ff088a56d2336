import { execFile } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  AbortedError,
  BadRequestError,
  OutOfCreditsError,
  type SearchRequest,
  Serpmill,
  SerpmillError,
  UnauthenticatedError,
} from "../../clients/typescript/src/serpmill.ts";
import { run } from "../harness/processes/run.ts";
import type { Service } from "../harness/processes/service.ts";
import { usualService } from "../harness/processes/usual-stack.ts";
import { listenOn } from "../harness/stubs/listen.ts";
import { serve } from "../harness/stubs/serve.ts";

/** What the TypeScript client promises apart from its repeats, which the conformance tests cover. */

const service = await usualService();
const baseURL = service.apis[0]?.url ?? "";

async function clientOf(organization: Parameters<Service["organization"]>[0] = {}) {
  const { token, organizationId } = await service.organization(organization);
  return { client: new Serpmill({ token, baseURL }), token, organizationId };
}

/** The error that a call throws. */
const errorOf = (call: Promise<unknown>): Promise<SerpmillError> =>
  call.then(
    () => Promise.reject(new Error("expected an error")),
    (error: unknown) => (error instanceof SerpmillError ? error : Promise.reject(error as Error)),
  );

test("a client without a token or an address names the option and the variable that it needs", () => {
  expect(() => new Serpmill({ baseURL })).toThrow("Expected a token in `token` or SERPMILL_TOKEN.");
  expect(() => new Serpmill({ token: "smk_a" })).toThrow(/`baseURL` or SERPMILL_URL\.$/);
  expect(() => new Serpmill({ token: "smk_a", baseURL: "ftp://a" })).toThrow(/`baseURL` or SERPMILL_URL\.$/);
  expect(() => new Serpmill({ token: "smk_a", baseURL, deadlineMs: 0 })).toThrow(RangeError);
});

test("what no request can carry is refused at once, without a password in the error", async () => {
  for (const address of ["https://caller:secret@a.example", "https://a.example/?key=secret", "smk_secret"])
    expect(() => new Serpmill({ token: "smk_a", baseURL: address })).toThrow(/^(?!.*secret)Expected the API's address/);
  const { client, token } = await clientOf();
  // What a URL leaves out is left out: the end of a line in a file of settings.
  expect(await new Serpmill({ token: `${token}\r\n`, baseURL: `${baseURL}/\r\n` }).usage()).toMatchObject({
    plan: "payg",
  });
  expect(() => client.search({ keyword: "tea" }, { idempotencyKey: "ключ" })).toThrow("`idempotencyKey`. Got ключ.");
  expect(() => client.searchMany([], { inFlightMax: 0 })).toThrow("`inFlightMax`. Got 0.");
});

test("an answer comes with its request id, its key and whether it is a replay", async () => {
  const { client } = await clientOf();
  const first = await client.search({ keyword: "tea", depth: 3 }, { idempotencyKey: "one" }).withResponse();
  const { data, ...repeat } = await client
    .search({ keyword: "tea", depth: 3 }, { idempotencyKey: "one" })
    .withResponse();
  expect(first).toMatchObject({ status: 200, isReplay: false, attempts: 1, idempotencyKey: "one" });
  expect(repeat).toMatchObject({ isReplay: true, requestId: first.requestId });
  expect(data).toEqual(first.data);
  expect(data.results.filter(({ type }) => type === "organic")).toHaveLength(3);
  expect((await client.search({ keyword: "tea", format: "compact" })).query.format).toBe("compact");
  expect(await client.usage()).toMatchObject({ plan: "payg", creditBalanceMils: 990 });
});

test("an error has the class of its code, typed details, the request id and an address of help that works", async () => {
  const { client } = await clientOf({ creditMils: 3 });
  const empty = await errorOf(client.search({ keyword: "tea" }));
  expect(empty).toBeInstanceOf(OutOfCreditsError);
  expect(empty).toMatchObject({ details: { availableMils: 3, priceMils: 5 }, status: 402, mayBeCharged: false });
  expect(empty.requestId).toMatch(/^req_/);
  expect(empty.help).toMatch(new RegExp(`^${baseURL}/docs#description/402-out-of-credits`));

  const wrong = await errorOf(client.search({ keyword: "tea", depth: 500 }));
  expect(wrong).toBeInstanceOf(BadRequestError);
  expect(wrong).toMatchObject({ details: { issues: [{ path: "depth" }] }, attempts: 1 });
  const stranger = new Serpmill({ token: "smk_a", baseURL });
  expect(await errorOf(stranger.usage())).toBeInstanceOf(UnauthenticatedError);
});

test("an answer of another server says that the address may be wrong, and is not repeated", async () => {
  let calls = 0;
  const address = await serve((_, response) => {
    calls += 1;
    response.writeHead(302, { location: baseURL }).end("<html>Moved</html>");
  });
  const error = await errorOf(new Serpmill({ token: "smk_a", baseURL: address }).search({ keyword: "tea" }));
  expect(error).toMatchObject({ code: "unexpected_reply", status: 302, mayBeCharged: false });
  expect(error.message).toContain("Check the address");
  expect(calls).toBe(1);
});

test.each([
  ["peer closed connection without sending TLS close_notify", true],
  ["read ECONNRESET", true],
  ["client error (Connect): invalid peer certificate: UnknownIssuer", false],
  ["client error (Connect): tcp connect error: Connection refused (os error 111)", false],
  ["connect ECONNREFUSED 127.0.0.1:9", false],
  ["connect EHOSTUNREACH 10.0.0.1:443 (EHOSTUNREACH)", false],
  ["read EHOSTUNREACH (EHOSTUNREACH)", true],
  ["bad port", false],
])("a search that fails with `%s` may be charged: %s", async (reason, mayBeCharged) => {
  const fails = () => Promise.reject(new TypeError("fetch failed", { cause: new Error(reason) }));
  const client = new Serpmill({ token: "smk_a", baseURL, fetch: fails, maxRetries: 0 });
  expect(await errorOf(client.search({ keyword: "tea" }))).toMatchObject({ code: "lost_reply", mayBeCharged });
});

test("a proxy that opens no tunnel has sent nothing, so its refusal is repeated a few times and no charge is feared", async () => {
  let tunnels = 0;
  const proxy = createServer().on("connect", (_, socket) => {
    tunnels += 1;
    socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
  });
  onTestFinished(() => void proxy.close());
  const port = await listenOn(proxy);
  const program = `
    import { Serpmill } from ${JSON.stringify(import.meta.resolve("../../clients/typescript/src/serpmill.ts"))};
    const client = new Serpmill({ token: "smk_a", baseURL: "https://serp.example", maxRetries: 1 });
    await client.search({ keyword: "tea" }).catch(({ attempts, mayBeCharged }) => console.log(attempts, mayBeCharged));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    env: { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: `http://127.0.0.1:${port}` },
  });
  expect({ stdout, tunnels }).toEqual({ stdout: "2 false\n", tunnels: 2 });
});

test("an error has the class of its code and its name, and with a code of a newer API the base class", async () => {
  const errorWith = (code: string) => {
    const answers = () => Promise.resolve(Response.json({ error: { code, message: "No." } }, { status: 400 }));
    return errorOf(new Serpmill({ token: "smk_a", baseURL, fetch: answers }).usage());
  };
  for (const code of ["bad_request", "engine_error", "engine_timeout", "internal_error", "out_of_credits"]) {
    const error = await errorWith(code);
    expect(error.constructor).not.toBe(SerpmillError);
    expect(error.name).toBe(error.constructor.name);
  }
  expect(await errorWith("newer")).toMatchObject({ constructor: SerpmillError, name: "SerpmillError" });
});

test("a program that replaces the global fetch also replaces that of the clients made before", async () => {
  const client = new Serpmill({ token: "smk_a", baseURL, maxRetries: 0 });
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ plan: "free", creditBalanceMils: 7 })));
  onTestFinished(() => void vi.unstubAllGlobals());
  expect(await client.usage()).toMatchObject({ creditBalanceMils: 7 });
});

test("the caller's signal ends a call at once, and the error has the key of what may be charged", async () => {
  const { client, organizationId } = await clientOf();
  const stop = new AbortController();
  const failing = errorOf(client.search({ keyword: "sandbox:slow=1500" }, { signal: stop.signal }));
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  stop.abort(new Error("enough"));
  const error = await failing;
  expect(error).toBeInstanceOf(AbortedError);
  expect(error).toMatchObject({ mayBeCharged: true, cause: new Error("enough") });

  const { idempotencyKey = "" } = error;
  const { isReplay } = await client.search({ keyword: "sandbox:slow=1500" }, { idempotencyKey }).withResponse();
  expect({ isReplay, holds: await service.holdsOf(organizationId) }).toMatchObject({ isReplay: true });
  expect((await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge")).toHaveLength(1);

  const unsent = await errorOf(client.search({ keyword: "tea" }, { signal: stop.signal }));
  expect([unsent.code, unsent.mayBeCharged]).toEqual(["aborted", false]);
});

test("calls that share a signal add no listeners to it, however many run", async () => {
  const held: ServerResponse[] = [];
  const stop = new AbortController();
  let areHeld: () => void = () => undefined;
  const allHeld = new Promise<void>((resolve) => (areHeld = resolve));
  const address = await serve((_, response) => {
    if (held.push(response) === 2) areHeld();
  });
  const client = new Serpmill({ token: "smk_a", baseURL: address });
  const failing = ["tea", "milk"].map((keyword) => errorOf(client.search({ keyword }, { signal: stop.signal })));
  await allHeld;
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  stop.abort();
  expect((await Promise.all(failing)).map(({ code }) => code)).toEqual(["aborted", "aborted"]);
});

test("many searches come as they end, with at most as many in flight as the caller says, and failures among them", async () => {
  const { client } = await clientOf({ plan: "free" });
  const keywords = ["sandbox:slow=700", "tea", "", "coffee", "milk"];
  const seen = [];
  for await (const one of client.searchMany(
    keywords.map((keyword) => ({ keyword })),
    { inFlightMax: 2 },
  )) {
    expect(one.progress.inFlight).toBeLessThanOrEqual(2);
    seen.push({ index: one.index, code: one.error?.code, done: one.progress.done });
  }
  expect(seen.map(({ done }) => done)).toEqual([1, 2, 3, 4, 5]);
  expect(seen.find(({ index }) => index === 2)?.code).toBe("bad_request");
  expect(seen.findIndex(({ index }) => index === 0)).toBeGreaterThan(0);
});

test("a request that is missing from the list fails alone, and those behind it still run", async () => {
  const { client } = await clientOf();
  const requests = JSON.parse('[{"keyword":"tea"},null,{"keyword":"milk"}]');
  const codes = new Map<number, string | undefined>();
  for await (const { index, error } of client.searchMany(requests)) codes.set(index, error?.code);
  expect([0, 1, 2].map((index) => codes.get(index))).toEqual([undefined, "bad_request", undefined]);
  expect(codes.size).toBe(3);
});

test("without credit, a second run with the same keys still gets all that the first one paid, and knows that it paid nothing", async () => {
  const { client } = await clientOf({ creditMils: 5 });
  const options = { idempotencyKey: ({ keyword }: SearchRequest) => keyword, inFlightMax: 1 };
  const endsOf = async (...keywords: string[]) => {
    const ends = [];
    const requests = keywords.map((keyword) => ({ keyword }));
    for await (const one of client.searchMany(requests, options)) ends.push(one.error ? one.error.code : one.isReplay);
    return ends;
  };
  expect(await endsOf("paid")).toEqual([false]);
  expect(await endsOf("new", "paid")).toEqual(["out_of_credits", true]);
});

test("when the credit is used up, no further search starts, and the rest of the requests is not read", async () => {
  const { client } = await clientOf({ creditMils: 10 });
  let asked = 0;
  async function* endless(): AsyncGenerator<{ keyword: string }> {
    for (;;) yield { keyword: `tea ${(asked += 1)}` };
  }
  let paid = 0;
  const all = (async () => {
    for await (const { answer } of client.searchMany(endless(), { inFlightMax: 1 })) paid += answer ? 1 : 0;
  })();
  expect(await errorOf(all)).toMatchObject({ code: "out_of_credits" });
  expect({ paid, asked }).toEqual({ paid: 2, asked: 3 });
});

test("an answer of another server ends many searches if it comes first, and later only its own", async () => {
  const replies: [number, string][] = [];
  const address = await serve((_, response) => {
    const [status, body] = replies.shift() ?? [200, '{"results":[]}'];
    response.writeHead(status).end(body);
  });
  const client = new Serpmill({ token: "smk_a", baseURL: address });
  const requests = ["a", "b", "c"].map((keyword) => ({ keyword }));
  const codesOf = async () => {
    const codes = [];
    for await (const { error } of client.searchMany(requests, { inFlightMax: 1 })) codes.push(error?.code);
    return codes;
  };
  replies.push([200, '{"results":[]}'], [403, "<html>blocked</html>"]);
  expect(await codesOf()).toEqual([undefined, "unexpected_reply", undefined]);
  const wrongPath = { requestId: "req_1", error: { code: "not_found", message: "", details: {} } };
  replies.push([403, "<html>blocked</html>"]);
  expect(await errorOf(codesOf())).toMatchObject({ code: "unexpected_reply" });
  replies.push([404, JSON.stringify(wrongPath)]);
  expect(await errorOf(codesOf())).toMatchObject({ code: "not_found" });
});

test.each(["source", "idempotencyKey"])(
  "what the caller's %s throws starts no more searches, and those that run are still yielded",
  async (from) => {
    const { client } = await clientOf();
    const fail = () => {
      throw new Error("lost the list");
    };
    function* requests(): Generator<SearchRequest> {
      yield { keyword: "sandbox:slow=300" };
      if (from === "source") fail();
      yield { keyword: "tea" };
    }
    const idempotencyKey = (_: SearchRequest, index: number) => (index > 0 ? fail() : "first");
    const answers: number[] = [];
    const all = async () => {
      const options = { inFlightMax: 2, ...(from === "idempotencyKey" && { idempotencyKey }) };
      for await (const { index, answer } of client.searchMany(requests(), options)) if (answer) answers.push(index);
    };
    await expect(all()).rejects.toThrow("lost the list");
    expect(answers).toEqual([0]);
  },
);

test("a caller that leaves the loop ends the searches that run", async () => {
  const held: ServerResponse[] = [];
  const address = await serve((_, response) => {
    if (held.push(response) === 2) held[0]?.end('{"results":[]}');
  });
  const client = new Serpmill({ token: "smk_a", baseURL: address });
  for await (const { index } of client.searchMany([{ keyword: "a" }, { keyword: "b" }, { keyword: "c" }], {
    inFlightMax: 2,
  })) {
    expect(index).toBe(0);
    break;
  }
  const [, second] = held;
  if (second && !second.closed) await once(second, "close");
  expect(held.length).toBeLessThanOrEqual(3);
});

test("no search starts while the rate window is used up", async () => {
  const startedAtMs: number[] = [];
  const address = await serve((_, response) => {
    startedAtMs.push(performance.now());
    const left = startedAtMs.length <= 2 ? 2 - startedAtMs.length : 99;
    const seconds = left === 99 ? 3_600 : 1; // Longer than the test, if the client waited although something is left.
    response.writeHead(200, { ratelimit: `"default";r=${left};t=${seconds}` }).end('{"results":[]}');
  });
  const client = new Serpmill({ token: "smk_a", baseURL: address });
  const requests = ["a", "b", "c", "d"].map((keyword) => ({ keyword }));
  for await (const { error } of client.searchMany(requests, { inFlightMax: 1 })) expect(error).toBeUndefined();
  const [, second = 0, third = 0] = startedAtMs;
  expect(third - second).toBeGreaterThanOrEqual(950);
  expect(startedAtMs).toHaveLength(4);
});

const cli = "clients/typescript/src/cli.ts";
const environmentOf = (token: string) => ({ SERPMILL_TOKEN: token, SERPMILL_URL: baseURL });

test("the command says 1 result, not 1 results", async () => {
  const result = { rank: 1, type: "organic", title: "coffee", url: "https://coffee.example" };
  const answer = JSON.stringify({ results: [result], creditsCharged: 5, creditsRemaining: 995 });
  const address = await serve((_, response) => void response.end(answer));
  const { stdout } = await run(cli, ["coffee"], { SERPMILL_TOKEN: "smk_a", SERPMILL_URL: address });
  expect(stdout).toMatch(/^coffee: 1 result for 5 mils, 995 left$/m);
});

test("the command prints a table, or each result as a line of JSON", async () => {
  const { token } = await clientOf();
  const table = await run(cli, ["coffee", "--depth", "3"], environmentOf(token));
  expect(table).toMatchObject({ exitCode: 0, stderr: "" });
  expect(table.stdout).toMatch(/^ *\d+  organic +coffee.* {2}https:\/\//m);
  expect(table.stdout).toMatch(/^coffee: \d+ results for 5 mils, 995 left\n$/m);
  const { stdout } = await run(cli, ["coffee", "--depth", "3", "--json"], environmentOf(token));
  const lines: unknown[] = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toContainEqual(
    expect.objectContaining({ keyword: "coffee", type: "organic", rank: expect.any(Number) }),
  );
});

test("the command exits with 1 and the error of a search, and with 2 and its usage for a wrong option", async () => {
  const { token } = await clientOf({ creditMils: 0 });
  const refused = await run(cli, ["coffee"], environmentOf(token));
  expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^coffee: out_of_credits: .*req_.*#description\/402/);
  const long = await run(cli, ["c".repeat(701)], environmentOf(token));
  expect(long.stderr).toMatch(/^c{79}…: bad_request: /);
  const wrong = await run(cli, ["coffee", "--dept", "3"], environmentOf(token));
  expect(wrong).toMatchObject({ exitCode: 2, stdout: "" });
  expect(wrong.stderr).toMatch(/--dept[^]*Usage: serpmill/);
  expect((await run(cli, ["coffee"], {})).stderr).toContain("SERPMILL_TOKEN");
});

test.each(["-h", "--help"])("the command explains with %s what is charged, and searches nothing", async (option) => {
  const { exitCode, stdout, stderr } = await run(cli, [option], {});
  expect([exitCode, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^Usage: serpmill[^]*Each KEYWORD is one charged search\. Quote a keyword of several words/);
});

test("the command ends quietly when the reader of its output has left", async () => {
  const { token } = await clientOf();
  const env = { PATH: "/usr/bin:/bin", ...environmentOf(token) };
  const piped = await promisify(execFile)("sh", ["-c", `"${process.execPath}" ${cli} coffee | true`], { env });
  expect(piped.stderr).toBe("");
  const full = promisify(execFile)("sh", ["-c", `"${process.execPath}" ${cli} coffee > /dev/full`], { env });
  await expect(full).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("ENOSPC") });
});
