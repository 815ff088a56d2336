import { existsSync, readFileSync } from "node:fs";

/** Signals a Postgres and its children, if the system lists them. */
export function signalPostgres(pid: number, signal: NodeJS.Signals): void {
  const list = `/proc/${pid}/task/${pid}/children`;
  const children = existsSync(list) ? readFileSync(list, "utf8").split(" ").filter(Boolean).map(Number) : [];
  for (const one of [pid, ...children]) {
    try {
      process.kill(one, signal);
    } catch {
      // It has ended.
    }
  }
}
