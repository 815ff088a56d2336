import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { runPython, withoutPython } from "../harness/clients/python.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { createAuthority, startBehindTls } from "../harness/servers/behind-tls.ts";
import { serve } from "../harness/stubs/serve.ts";

/** What the Python client promises apart from its repeats, which the conformance tests cover; and how it connects. */

describe.skipIf(withoutPython !== "")(`the Python client${withoutPython}`, () => {
  const cancelling = `
import asyncio, sys
from serpmill import AsyncSerpmill

async def search(client):
    async for outcome in client.search_many([{"keyword": "a"}, {"keyword": "b"}, {"keyword": "c"}], in_flight_max=2):
        print(outcome.index, flush=True)

async def main():
    task = asyncio.create_task(search(AsyncSerpmill("smk_a", sys.argv[1])))
    await asyncio.to_thread(sys.stdin.readline)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")

asyncio.run(main())
`;

  test("a task that is cancelled amid many searches ends those that run, and starts no more", async () => {
    const held: ServerResponse[] = [];
    let areHeld: () => void = () => undefined;
    const twoHeld = new Promise<void>((resolve) => (areHeld = resolve));
    const url = await serve((_, response) => {
      if (held.push(response) === 2) areHeld();
    });
    const running = runPython([cancelling, url]);
    await twoHeld;
    const closed = held.map((response) => once(response, "close"));
    running.child.stdin?.end("stop\n");
    const { stdout, stderr } = await running;
    await Promise.all(closed);
    expect({ stdout, stderr, requests: held.length }).toEqual({ stdout: "cancelled\n", stderr: "", requests: 2 });
  });

  const many = `
import sys, threading
from serpmill import Serpmill

client = Serpmill("smk_a", sys.argv[1])
requests = [{"keyword": "a"}, {"keyword": "b"}]
key_of = lambda request, index: f"{threading.current_thread().name}-{index}"
for outcome in client.search_many(requests, in_flight_max=1, idempotency_key=key_of, max_retries=0, deadline_s=20):
    print(outcome.index, outcome.error.code, outcome.error.attempts, outcome.progress)
`;

  test("many searches keep the deadline and the retries of their call, get their keys in its thread, and say how far they are", async () => {
    const keys: unknown[] = [];
    const url = await serve((request, response) => {
      keys.push(request.headers["idempotency-key"]);
      response.writeHead(500).end('{"requestId":"req_1","error":{"code":"internal_error","message":"","details":{}}}');
    });
    const { stdout } = await runPython([many, url]);
    expect(stdout.trimEnd().split("\n")).toEqual([
      "0 internal_error 1 Progress(done=1, failed=1, in_flight=0)",
      "1 internal_error 1 Progress(done=2, failed=2, in_flight=0)",
    ]);
    expect(keys).toEqual(["MainThread-0", "MainThread-1"]);
  });

  const failing = `
import sys, urllib.request
from serpmill import Serpmill

client = Serpmill("smk_a", sys.argv[1])

def fail():
    urllib.request.urlopen(sys.argv[1] + "/failing").read()
    raise RuntimeError("lost the list")

def requests():
    yield {"keyword": "a"}
    if sys.argv[2] == "source":
        fail()
    yield {"keyword": "b"}

def key(request, index):
    return "first" if index == 0 else fail()

try:
    for outcome in client.search_many(requests(), in_flight_max=2, idempotency_key=key):
        print(outcome.index, outcome.answer, outcome.is_replay)
except Exception as error:
    print(error)
`;

  test.each(["source", "key"])(
    "what the caller's %s raises starts no more searches, and those that run are still yielded",
    async (from) => {
      let searched: (response: ServerResponse) => void = () => undefined;
      const first = new Promise<ServerResponse>((resolve) => (searched = resolve));
      // The first search is answered once the caller's code fails.
      const url = await serve((request, response) => {
        if (request.url !== "/failing") return searched(response);
        response.end();
        void first.then((held) => held.writeHead(200, { "idempotency-replayed": "true" }).end('{"results":[]}'));
      });
      const { stdout } = await runPython([failing, url, from]);
      expect(stdout).toBe("0 {'results': []} True\nlost the list\n");
    },
  );

  const stopping = `
import sys
from serpmill import Serpmill, SerpmillError

client = Serpmill("smk_a", sys.argv[1])
try:
    for outcome in client.search_many([{"keyword": k} for k in "abcd"], in_flight_max=2):
        print(outcome.error.code if outcome.error else "answered")
except SerpmillError as error:
    print(error.code)
`;

  test("a search that waits for the rate window does not start once none of the rest can succeed", async () => {
    const refusal = '{"requestId":"req_1","error":{"code":"unauthenticated","message":"","details":{}}}';
    const held: ServerResponse[] = [];
    const url = await serve((_, response) => {
      // Both searches have begun before an answer says that the window is full.
      if (held.push(response) !== 2) return;
      held[0]?.writeHead(200, { ratelimit: '"default";r=0;t=3600' }).end('{"results":[]}');
      setTimeout(() => response.writeHead(401).end(refusal), 300);
    });
    const { stdout } = await runPython([stopping, url]);
    const [first, second, raised, ...rest] = stdout.trimEnd().split("\n");
    expect(new Set([first, second])).toEqual(new Set(["answered", "unauthenticated"]));
    expect([raised, rest, held.length]).toEqual(["unauthenticated", [], 2]);
  });

  const sharing = `
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from serpmill import Cancellation, Serpmill, SerpmillError

client = Serpmill("smk_a", sys.argv[1])
cancellation = Cancellation()

def search(keyword):
    try:
        client.search({"keyword": keyword}, cancellation=cancellation)
        return "answered"
    except SerpmillError as error:
        return error.code

with ThreadPoolExecutor() as threads:
    ended = as_completed([threads.submit(search, keyword) for keyword in "abc"])
    print(next(ended).result())
    cancellation.cancel()
    client.usage()
    for search in ended:
        print(search.result())
`;

  test("a cancellation ends all calls that share it, also once one of them has its answer", async () => {
    const held: ServerResponse[] = [];
    const url = await serve(({ method }, response) => {
      if (method === "POST" && held.push(response) < 3) return;
      // The last search is answered at once; the others after the cancellation, which is too late.
      if (method === "GET") for (const late of held) late.end('{"results":[]}');
      response.end(method === "GET" ? '{"creditBalanceMils":0}' : '{"results":[]}');
    });
    const { stdout } = await runPython([sharing, url]);
    expect(stdout.trimEnd().split("\n")).toEqual(["answered", "aborted", "aborted"]);
  });

  const refused = `
import pickle
from serpmill import Serpmill, SerpmillError
from serpmill.call import Cancellation

Serpmill("smk_a", "https://bücher.example")
client = Serpmill("smk_a\\r\\n", "http://127.0.0.1:1/\\r\\n")
cancellation = Cancellation()
cancellation.cancel()
for attempt in (
    lambda: Serpmill("smk_a", "https://caller:secret@a.example"),
    lambda: Serpmill("smk_a", "http://a.example:99999"),
    lambda: Serpmill("smk_a", "http://a.example/a path"),
    lambda: Serpmill("smk_a", "http://a..example"),
    lambda: Serpmill("smk_a", ""),
    lambda: Serpmill("", "http://a.example"),
    lambda: client.search({"keyword": "a"}, idempotency_key="two words"),
    lambda: client.search({"keyword": "a"}, idempotency_key=""),
    lambda: client.search_many([], in_flight_max=0),
    lambda: client.search_with_response({"keyword": "a"}, cancellation=cancellation),
):
    try:
        attempt()
    except SerpmillError as error:
        copied = pickle.loads(pickle.dumps(error))
        print(type(copied).__name__, str(copied)[:10], copied.may_be_charged, copied.attempts)
    except ValueError as error:
        print(str(error).split(". ")[-1])
`;

  test("what no request can carry is refused at once, and what was not sent is not charged", async () => {
    // What the environment has does not replace an empty value that a program gives.
    const { stdout } = await runPython([refused], { SERPMILL_TOKEN: "smk_b", SERPMILL_URL: "http://b.example" });
    expect(stdout.trimEnd().split("\n")).toEqual([
      ...Array(5).fill("Expected the API's address, https://…, in `base_url` or SERPMILL_URL."),
      "Expected a token in `token` or SERPMILL_TOKEN.",
      "Got 'two words'.",
      "Got ''.",
      "Got 0.",
      "AbortedError The caller False 1",
    ]);
  });

  const malformed = `
import sys
from serpmill import Serpmill, SerpmillError

try:
    Serpmill("smk_a", sys.argv[1], max_retries=0).search({"keyword": "a"}, idempotency_key="mine")
except SerpmillError as error:
    print(error.code, error.may_be_charged, error.idempotency_key)
`;

  test("a malformed answer is a lost reply with its key", async () => {
    const url = await serve((_, response) => response.end("[".repeat(100_000)));
    const { stdout } = await runPython([malformed, url]);
    expect(stdout).toBe("lost_reply True mine\n");
  });

  /** A server whose queue is full: the kernel answers no further connection. */
  const silentServer = `
import socket

silent = socket.socket()
silent.bind(("127.0.0.1", 0))
silent.listen(0)
waiting = [socket.socket() for _ in range(4)]
for sock in waiting:
    sock.setblocking(False)
    sock.connect_ex(silent.getsockname())
`;

  const fallingBack = `${silentServer}
import sys
from urllib.parse import urlsplit
from serpmill import Serpmill

addresses = [silent.getsockname(), ("127.0.0.1", urlsplit(sys.argv[1]).port)]
socket.getaddrinfo = lambda *_: [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in addresses]
print(Serpmill("smk_a", "http://serp.example").search_with_response({"keyword": "a"}).attempts)
`;

  test("where the first address of a host does not answer, the first attempt uses the next one", async () => {
    const url = await serve((_, response) => void response.end('{"results":[]}'));
    const { stdout } = await runPython([fallingBack, url]);
    expect(stdout).toBe("1\n");
  });

  const unanswered = `${silentServer}
import threading
from serpmill import Cancellation, Serpmill, SerpmillError

socket.getaddrinfo = lambda *_: [(socket.AF_INET, socket.SOCK_STREAM, 0, "", silent.getsockname())] * 20
connect, tries = socket.socket.connect, []

def count(sock, address):
    tries.append(address)
    if cancels:
        threading.Thread(target=cancellation.cancel).start()
    connect(sock, address)

socket.socket.connect = count
client, cancellation = Serpmill("smk_a", "http://serp.example"), Cancellation()
for cancels, deadline_s in ((False, 1), (True, 60)):
    tries.clear()
    try:
        client.search({"keyword": "a"}, deadline_s=deadline_s, cancellation=cancellation)
    except SerpmillError as error:
        print(error.code, error.may_be_charged, len(tries) <= 2)
`;

  test("where no address of a host answers, the deadline and a cancellation end the call, and further addresses are not tried", async () => {
    const { stdout } = await runPython([unanswered]);
    expect(stdout).toBe("lost_reply False True\naborted False True\n");
  });

  const unresolved = `
import socket, threading
from serpmill import Serpmill, SerpmillError

socket.getaddrinfo = lambda *_: threading.Event().wait()
try:
    Serpmill("smk_a", "http://serp.example").search({"keyword": "a"}, deadline_s=1)
except SerpmillError as error:
    print(error.code, error.may_be_charged, error)
`;

  test("where the name of the host is not resolved, the deadline ends the call, and the program can end", async () => {
    const { stdout } = await runPython([unresolved]);
    expect(stdout).toMatch(/^lost_reply False .*No answer came in time\./);
  });

  const addressed = `
import socket
from serpmill import Serpmill, SerpmillError

def resolve(*asked):
    print(*asked[:2])
    raise OSError("not resolved")

socket.getaddrinfo = resolve
for base_url in ("https://[2001:db8::5]", "http://[fd00::abcd]", "http://[::1]:8080"):
    try:
        Serpmill("smk_a", base_url, max_retries=0).usage()
    except SerpmillError as error:
        print(error.code)
`;

  test("an IPv6 address without a port is connected to at the port of its scheme", async () => {
    const { stdout } = await runPython([addressed]);
    const connections = ["2001:db8::5 443", "fd00::abcd 80", "::1 8080"];
    expect(stdout).toBe(connections.map((address) => `${address}\nlost_reply\n`).join(""));
  });

  const searching = `
import sys
from serpmill import Serpmill

print(Serpmill("smk_a", sys.argv[1]).search_with_response({"keyword": "a"}).attempts)
`;

  test("interim answers of a proxy are skipped, and the answer behind them is read", async () => {
    const url = await serve((_, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      response.end('{"results":[]}');
    });
    const { stdout } = await runPython([searching, url]);
    expect(stdout).toBe("1\n");
  });

  const overTls = `
import pickle, ssl, sys
from serpmill import Serpmill

read, reads = ssl.SSLContext.load_default_certs, []
ssl.SSLContext.load_default_certs = lambda *given: (reads.append(given), read(*given))
client = Serpmill("smk_a", sys.argv[1])
for _ in range(10):
    client.search({"keyword": "a"})
print(len(reads), pickle.loads(pickle.dumps(client)).search({"keyword": "a"}))
`;

  test("ten searches over HTTPS read the system's certificates once, and the client can be pickled", async () => {
    const folder = await GuardedFolder.create("serpmill-python-");
    onTestFinished(() => folder.remove());
    const { port } = new URL(await serve((_, response) => void response.end('{"results":[]}')));
    const authority = await createAuthority(folder.path);
    const secure = await startBehindTls(authority, { host: "127.0.0.1", port: Number(port) }, false);
    onTestFinished(secure.stop);
    const trusted = { SSL_CERT_FILE: join(folder.path, "ca.crt") };
    const { stdout } = await runPython([overTls, `https://localhost:${secure.port}`], trusted);
    expect(stdout).toBe("1 {'results': []}\n");
  });
});
