import { request as ask, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { listen } from "../stubs/listen.ts";

const invented = z.strictObject({
  kind: z.literal("answer"),
  status: z.int(),
  after: z.boolean().optional(),
  early: z.boolean().optional(),
  text: z.string().optional(),
  code: z.string().optional(),
  reason: z.string().optional(),
  retryAfter: z.string().optional(),
  date: z.string().optional(),
});
/**
 * What happens to one request on its way. `after`: the API answers it first, and that answer is lost. `early`: the answer comes
 * before the request is read, and ends the connection.
 */
export const faultSchema = z.union([
  z.strictObject({ kind: z.enum(["pass", "refuse", "lose", "cut", "cut-after", "hold"]) }),
  z.strictObject({ kind: z.literal("delay"), ms: z.int() }),
  invented,
]);
type Fault = z.infer<typeof faultSchema>;

/** A request that arrived at the proxy. */
export interface Arrival {
  atMs: number;
  key: string | undefined;
}

interface Answered {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** An HTTP proxy in front of an API that does a fault to each request in turn, and lets the others pass. */
export async function startFaultyProxy(target: string, faults: readonly Fault[], always = false) {
  const arrivals: Arrival[] = [];
  const listening = await listen((request, response) => {
    const key = request.headers["idempotency-key"];
    const fault = faults[arrivals.length] ?? (always ? faults.at(-1) : undefined) ?? { kind: "pass" };
    arrivals.push({ atMs: performance.now(), key: typeof key === "string" ? key : undefined });
    void carry(target, fault, request, response).catch(() => response.destroy());
  });
  return { ...listening, arrivals };
}

async function carry(target: string, fault: Fault, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (fault.kind === "refuse") return void request.socket.destroy();
  if (fault.kind === "answer" && fault.early) return invent(fault, response.setHeader("connection", "close"));
  const body = await buffer(request);
  if (fault.kind === "answer" && !fault.after) return invent(fault, response);
  const answered = await forward(target, request, body);
  const head = () => response.writeHead(answered.status, answered.headers);
  switch (fault.kind) {
    case "answer":
      return invent(fault, response);
    case "lose":
      return void response.destroy();
    case "hold":
      return;
    case "cut":
      return void head().write(answered.body.subarray(0, answered.body.length / 2), () => response.destroy());
    case "cut-after":
      return void head().end(answered.body, () => request.socket.destroy());
    case "delay":
      await sleep(fault.ms);
      return void head().end(answered.body);
    case "pass":
      return void head().end(answered.body);
  }
}

function invent(answer: z.infer<typeof invented>, response: ServerResponse): void {
  const { status, code, reason, retryAfter, date, text } = answer;
  const details = reason === undefined ? {} : { reason };
  const error = { requestId: "req_01m80e03wze4cr8a90msysevh5", error: { code, message: "Invented.", details } };
  const pause = { ...(retryAfter !== undefined && { "retry-after": retryAfter }), ...(date !== undefined && { date }) };
  const elsewhere = status === 307 ? { location: "/v1/usage" } : {};
  response.writeHead(status, { "content-type": "application/json", ...pause, ...elsewhere });
  response.end(text ?? JSON.stringify(error));
}

function forward(target: string, { method, url, headers }: IncomingMessage, body: Buffer): Promise<Answered> {
  const { hostname, port } = new URL(target);
  return new Promise((resolve, reject) => {
    const onward = ask({ hostname, port, method, path: url, headers }, (answer) => {
      buffer(answer).then(
        (whole) => resolve({ status: answer.statusCode ?? 502, headers: answer.headers, body: whole }),
        reject,
      );
    });
    onward.on("error", reject).end(body);
  });
}
