import { Serpmill, SerpmillError } from "../../clients/typescript/src/serpmill.ts";

/** Makes one call of the conformance file with the TypeScript client, and prints how it ended as JSON. */

interface Task {
  options: { token: string; baseURL: string; deadlineMs?: number; maxRetries?: number };
  call: "search" | "usage" | "many";
  keyword: string;
  count: number;
  clockJumpMs: number;
}

// The runner writes it.
const { options, call, keyword, count, clockJumpMs } = JSON.parse(process.argv[2] ?? "") as Task;
const readClock = Date.now;
let reads = 0;
Date.now = () => readClock() + (reads++ % 2 === 0 ? 1 : -1) * clockJumpMs;
const client = new Serpmill(options);

async function run(): Promise<object> {
  if (call === "many") {
    let answers = 0;
    const requests = Array.from({ length: count }, (_, at) => ({ keyword: `${keyword} ${at}` }));
    for await (const { answer } of client.searchMany(requests)) answers += answer ? 1 : 0;
    return { answers };
  }
  const { isReplay, attempts } = await (call === "usage" ? client.usage() : client.search({ keyword })).withResponse();
  return { answers: 1, isReplay, attempts };
}

async function fetchPaid(idempotencyKey: string): Promise<boolean> {
  const paid = await new Serpmill({ ...options, deadlineMs: 30_000, baseURL: process.argv[3] ?? "" })
    .search({ keyword }, { idempotencyKey })
    .withResponse();
  return paid.isReplay;
}

async function describe(error: unknown): Promise<object> {
  if (!(error instanceof SerpmillError)) throw error;
  const { code, mayBeCharged, idempotencyKey = "", attempts } = error;
  const fetched = process.argv[3] && mayBeCharged ? await fetchPaid(idempotencyKey) : undefined;
  return { answers: 0, error: code, className: error.name, mayBeCharged, key: idempotencyKey, attempts, fetched };
}

process.stdout.write(JSON.stringify(await run().catch(describe)));
