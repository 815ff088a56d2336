/** A response that has arrived, in whole or in part. */
export interface PartialResponse {
  status: number;
  headers: Headers;
  body: string;
  isWhole: boolean;
}

const headEnd = "\r\n\r\n";

/** Parses the responses of one connection. The bytes may end anywhere. */
export function responsesIn(received: Buffer): PartialResponse[] {
  const responses: PartialResponse[] = [];
  for (let rest = received; rest.length > 0; ) {
    const headLength = rest.indexOf(headEnd);
    if (headLength < 0) break;
    const [statusLine = "", ...lines] = rest.toString("latin1", 0, headLength).split("\r\n");
    const headers = new Headers(
      lines.map((line): [string, string] => [
        line.slice(0, line.indexOf(":")),
        line.slice(line.indexOf(":") + 1).trim(),
      ]),
    );
    const bytes = rest.subarray(headLength + headEnd.length);
    const { body, used, isWhole } = headers.get("transfer-encoding")
      ? readChunks(bytes)
      : readLength(bytes, Number(headers.get("content-length") ?? 0));
    const status = Number(statusLine.split(" ")[1]);
    if (status >= 200) responses.push({ status, headers, body: body.toString(), isWhole });
    rest = bytes.subarray(used);
  }
  return responses;
}

interface PartialBody {
  body: Buffer;
  used: number;
  isWhole: boolean;
}

function readLength(bytes: Buffer, length: number): PartialBody {
  const used = Math.min(length, bytes.length);
  return { body: bytes.subarray(0, used), used, isWhole: used === length };
}

function readChunks(bytes: Buffer): PartialBody {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return { body: Buffer.concat(parts), used: bytes.length, isWhole: false };
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const begin = lineEnd + 2;
    parts.push(bytes.subarray(begin, begin + size));
    at = begin + size + 2;
    if (size === 0) return { body: Buffer.concat(parts), used: Math.min(at, bytes.length), isWhole: true };
    if (at > bytes.length) return { body: Buffer.concat(parts), used: bytes.length, isWhole: false };
  }
}

/** The code and reason of an error body, as in `rate_limited: window`; the status otherwise. */
export function outcomeOf({ status, body, isWhole }: PartialResponse): string {
  const [, code] = /"code":"(\w+)"/.exec(body) ?? [];
  const [, reason] = /"reason":"(\w+)"/.exec(body) ?? [];
  if (status === 200 || code === undefined) return isWhole ? String(status) : `${status}, cut off`;
  return reason === undefined ? `${status} ${code}` : `${status} ${reason}`;
}
