import type { IncomingHttpHeaders } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { listen } from "./listen.ts";

/** A span as a collector received it. Times are in nanoseconds since the epoch, ids in hexadecimal. */
export interface ReceivedSpan {
  service: unknown;
  name: string;
  traceId: string;
  spanId: string;
  /** Empty for the first span of a trace. */
  parentSpanId: string;
  kind: number;
  startedAt: bigint;
  endedAt: bigint;
  attributes: Record<string, unknown>;
  isError: boolean;
}

export interface CollectorStub {
  url: string;
  spans: ReceivedSpan[];
  requests: { path: string; headers: IncomingHttpHeaders; body: Buffer }[];
  close: () => Promise<void>;
}

/** A real server on a free loopback port that receives traces over OTLP/HTTP. With `isSilent` it answers no request. */
export async function startCollectorStub({ isSilent = false } = {}): Promise<CollectorStub> {
  const stub: Pick<CollectorStub, "spans" | "requests"> = { spans: [], requests: [] };
  const listening = await listen((request, response) => {
    void buffer(request).then((sent) => {
      const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
      stub.requests.push({ path: request.url ?? "", headers: request.headers, body });
      stub.spans.push(...readSpans(body));
      if (!isSilent) response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  return { ...listening, ...stub };
}

/** Field numbers of the messages in opentelemetry/proto/trace/v1/trace.proto, and of those that they use. */
const [resourceSpans, resource, resourceAttributes, scopeSpans, spansOfScope] = [1, 1, 1, 2, 2];
const okOrUnset = 1;

function readSpans(body: Buffer): ReceivedSpan[] {
  return messages(body, resourceSpans).flatMap((group) => {
    const own = messages(group, resource).flatMap((of) => messages(of, resourceAttributes));
    const service = readAttributes(own)["service.name"];
    return messages(group, scopeSpans)
      .flatMap((scope) => messages(scope, spansOfScope))
      .map((span) => ({ service, ...readSpan(span) }));
  });
}

function readSpan(span: Buffer): Omit<ReceivedSpan, "service"> {
  const hex = (field: number) => messages(span, field)[0]?.toString("hex") ?? "";
  const number = (field: number) => numbers(span, field)[0] ?? 0n;
  const [status] = messages(span, 15);
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentSpanId: hex(4),
    name: messages(span, 5).join(""),
    kind: Number(number(6)),
    startedAt: number(7),
    endedAt: number(8),
    attributes: readAttributes(messages(span, 9)),
    isError: status !== undefined && Number(numbers(status, 3)[0] ?? 0n) > okOrUnset,
  };
}

function readAttributes(pairs: readonly Buffer[]): Record<string, unknown> {
  const read = pairs.map((pair) => {
    const [value = Buffer.of()] = messages(pair, 2);
    return [messages(pair, 1).join(""), messages(value, 1)[0]?.toString() ?? Number(numbers(value, 3)[0])];
  });
  return Object.fromEntries(read);
}

/** The fields of a number that are messages, texts or bytes. */
const messages = (message: Buffer, field: number) =>
  fieldsOf(message).flatMap(([number, value]) => (number === field && typeof value !== "bigint" ? [value] : []));
const numbers = (message: Buffer, field: number) =>
  fieldsOf(message).flatMap(([number, value]) => (number === field && typeof value === "bigint" ? [value] : []));

/** Reads the wire format of Protocol Buffers: the number of each field with its value. */
function fieldsOf(message: Buffer): [number: number, value: bigint | Buffer][] {
  const fields: [number, bigint | Buffer][] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at);
      at += 1;
      value |= BigInt(byte % 128) << shift;
      if (byte < 128) return value;
    }
  };
  const take = (length: number) => message.subarray(at, (at += length));
  while (at < message.length) {
    const tag = Number(varint());
    const readers = [varint, () => take(8).readBigUInt64LE(), () => take(Number(varint()))];
    const read = readers[tag % 8] ?? (() => BigInt(take(4).readUInt32LE()));
    fields.push([Math.floor(tag / 8), read()]);
  }
  return fields;
}
