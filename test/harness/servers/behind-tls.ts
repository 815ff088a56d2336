import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { listenOn } from "../stubs/listen.ts";

/** Certificates of an authority of its own, and servers behind TLS with them, as managed services have it. */

const openssl = (folder: string, ...args: string[]) => promisify(execFile)("openssl", args, { cwd: folder });
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];

export interface Authority {
  /** Its certificate, as PEM. */
  certificate: string;
  /** The certificate of `localhost`. */
  context: SecureContext;
  /** One of another host. */
  otherHost: SecureContext;
}

/** Makes an authority that signs one certificate for `localhost`, and one for another host. Its files are in `folder`. */
export async function createAuthority(folder: string): Promise<Authority> {
  await openssl(folder, "req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Stores");
  const context = await sign(folder, "server", "localhost");
  const otherHost = await sign(folder, "other", "other.example");
  return { certificate: await readFile(join(folder, "ca.crt"), "utf8"), context, otherHost };
}

async function sign(folder: string, name: string, host: string): Promise<SecureContext> {
  const signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", `subjectAltName=DNS:${host}`];
  const own = ["-keyout", `${name}.key`, "-out", `${name}.crt`, "-subj", `/CN=${host}`];
  await openssl(folder, "req", "-x509", ...newKey, ...signed, ...own);
  const [cert, key] = await Promise.all([`${name}.crt`, `${name}.key`].map((file) => readFile(join(folder, file))));
  return createSecureContext({ cert, key });
}

/** With these 8 bytes a client asks Postgres for TLS, which answers with `S`. */
const requestBytes = 8;

/**
 * Listens on a free port of 127.0.0.1 in front of a server without TLS.
 * @param asks whether clients first ask for TLS, as those of Postgres do.
 */
export async function startBehindTls(authority: Authority, target: { host: string; port: number }, asks: boolean) {
  const sockets = new Set<Socket>();
  let { context } = authority;
  const keep = <Kept extends Socket>(socket: Kept): Kept => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    return socket;
  };
  const encrypt = (socket: Socket) => {
    const secure = keep(new TLSSocket(socket, { isServer: true, secureContext: context }));
    const plain = keep(connect(target));
    secure.pipe(plain).pipe(secure);
    secure.on("close", () => plain.destroy());
    plain.on("close", () => secure.destroy());
  };
  const server = createServer((socket) => {
    keep(socket);
    if (!asks) return encrypt(socket);
    socket.once("readable", () => {
      if (socket.read(requestBytes) === null) return socket.destroy();
      socket.write("S");
      return encrypt(socket);
    });
  });
  return {
    port: await listenOn(server),
    /** Shows this certificate from now on, and closes the connections that know another one. */
    show: (shown: SecureContext) => {
      context = shown;
      for (const socket of sockets) socket.destroy();
    },
    stop: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
