import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runPython, withoutPython } from "../harness/clients/python.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { createAuthority, startBehindTls } from "../harness/servers/behind-tls.ts";
import { serve } from "../harness/stubs/serve.ts";

/** How the Python client connects, and what it reads before the answer. */

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

test.skipIf(withoutPython !== "")(
  `where the first address of a host does not answer, the first attempt uses the next one${withoutPython}`,
  async () => {
    const url = await serve((_, response) => void response.end('{"results":[]}'));
    const { stdout } = await runPython([fallingBack, url]);
    expect(stdout).toBe("1\n");
  },
);

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

test.skipIf(withoutPython !== "")(
  `where no address of a host answers, the deadline and a cancellation end the call, and further addresses are not tried${withoutPython}`,
  async () => {
    const { stdout } = await runPython([unanswered]);
    expect(stdout).toBe("lost_reply False True\naborted False True\n");
  },
);

const unresolved = `
import socket, threading
from serpmill import Serpmill, SerpmillError

socket.getaddrinfo = lambda *_: threading.Event().wait()
try:
    Serpmill("smk_a", "http://serp.example").search({"keyword": "a"}, deadline_s=1)
except SerpmillError as error:
    print(error.code, error.may_be_charged, error)
`;

test.skipIf(withoutPython !== "")(
  `where the name of the host is not resolved, the deadline ends the call, and the program can end${withoutPython}`,
  async () => {
    const { stdout } = await runPython([unresolved]);
    expect(stdout).toMatch(/^lost_reply False .*No answer came in time\./);
  },
);

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

test.skipIf(withoutPython !== "")(
  `an IPv6 address without a port is connected to at the port of its scheme${withoutPython}`,
  async () => {
    const { stdout } = await runPython([addressed]);
    const connections = ["2001:db8::5 443", "fd00::abcd 80", "::1 8080"];
    expect(stdout).toBe(connections.map((address) => `${address}\nlost_reply\n`).join(""));
  },
);

const searching = `
import sys
from serpmill import Serpmill

print(Serpmill("smk_a", sys.argv[1]).search_with_response({"keyword": "a"}).attempts)
`;

test.skipIf(withoutPython !== "")(
  `interim answers of a proxy are skipped, and the answer behind them is read${withoutPython}`,
  async () => {
    const url = await serve((_, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      response.end('{"results":[]}');
    });
    const { stdout } = await runPython([searching, url]);
    expect(stdout).toBe("1\n");
  },
);

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

test.skipIf(withoutPython !== "")(
  `ten searches over HTTPS read the system's certificates once, and the client can be pickled${withoutPython}`,
  async () => {
    const folder = await GuardedFolder.create("serpmill-python-");
    onTestFinished(() => folder.remove());
    const { port } = new URL(await serve((_, response) => void response.end('{"results":[]}')));
    const authority = await createAuthority(folder.path);
    const secure = await startBehindTls(authority, { host: "127.0.0.1", port: Number(port) }, false);
    onTestFinished(secure.stop);
    const trusted = { SSL_CERT_FILE: join(folder.path, "ca.crt") };
    const { stdout } = await runPython([overTls, `https://localhost:${secure.port}`], trusted);
    expect(stdout).toBe("1 {'results': []}\n");
  },
);
