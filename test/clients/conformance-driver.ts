import { Serpmill, SerpmillError } from "../../clients/typescript/src/serpmill.ts";

/** Makes calls of the conformance file with the TypeScript client, all at once, and prints how each ended as JSON. */

interface Task {
  options: { token: string; baseURL: string; deadlineMs?: number; maxRetries?: number };
  call: "search" | "usage" | "many";
  request: { keyword: string };
  /** So long the keyword is made: the command line has no place for large ones. */
  keywordCharacters: number;
  requests: { keyword: string }[];
  /** Where to fetch an answer that was paid for and lost. */
  api?: string;
}

// The runner writes it.
const tasks = JSON.parse(process.argv[2] ?? "") as Task[];
for (const { request, keywordCharacters } of tasks) request.keyword = request.keyword.padEnd(keywordCharacters, "a");
const clockJumpMs = Number(process.argv[3]);
const readClock = Date.now;
let reads = 0;
Date.now = () => readClock() + reads++ * clockJumpMs;

async function run({ options, call, request, requests }: Task): Promise<object> {
  const client = new Serpmill(options);
  if (call === "many") {
    let answers = 0;
    for await (const { answer } of client.searchMany(requests)) answers += answer ? 1 : 0;
    return { answers };
  }
  const { isReplay, attempts } = await (call === "usage" ? client.usage() : client.search(request)).withResponse();
  return { answers: 1, isReplay, attempts };
}

async function fetchPaid({ options, request }: Task, baseURL: string, idempotencyKey: string): Promise<boolean> {
  const paid = await new Serpmill({ ...options, deadlineMs: 30_000, baseURL })
    .search(request, { idempotencyKey })
    .withResponse();
  return paid.isReplay;
}

async function describe(task: Task, error: unknown): Promise<object> {
  if (!(error instanceof SerpmillError)) throw error;
  const { code, mayBeCharged, idempotencyKey = "", attempts } = error;
  const fetched = task.api && mayBeCharged ? await fetchPaid(task, task.api, idempotencyKey) : undefined;
  return { answers: 0, error: code, mayBeCharged, key: idempotencyKey, attempts, fetched };
}

const outcomes = tasks.map((task) => run(task).catch((error: unknown) => describe(task, error)));
process.stdout.write(JSON.stringify(await Promise.all(outcomes)));
