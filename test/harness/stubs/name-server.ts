import { createSocket } from "node:dgram";
import { once } from "node:events";

const typeA = 1;
const headerBytes = 12;
/** A pointer to the name of the question, type A, class IN, valid for 0 s, four bytes. */
const recordHead = Buffer.from([0xc0, 0x0c, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4]);

export interface NameServer {
  port: number;
  /** The addresses of every name, as of now. */
  readonly addresses: Set<string>;
  close: () => Promise<void>;
}

/** A DNS server that answers as Docker's does for a service: with one IPv4 address for each container, and no IPv6. */
export async function startNameServer(): Promise<NameServer> {
  const socket = createSocket("udp4");
  const addresses = new Set<string>();
  socket.on("message", (query, from) => socket.send(answerTo(query, addresses), from.port, from.address));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    port: socket.address().port,
    addresses,
    close: async () => {
      socket.close();
      await once(socket, "close");
    },
  };
}

function answerTo(query: Buffer, addresses: ReadonlySet<string>): Buffer {
  const questionEnd = query.indexOf(0, headerBytes) + 5;
  const question = query.subarray(headerBytes, questionEnd);
  const isA = query.readUInt16BE(questionEnd - 4) === typeA;
  const records = [...(isA ? addresses : [])].map((address) =>
    Buffer.concat([recordHead, Buffer.from(address.split(".").map(Number))]),
  );
  const header = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80, 0, 1, 0, records.length, 0, 0, 0, 0]);
  return Buffer.concat([header, question, ...records]);
}
