import { hostsOf } from "./redis-address.ts";

/** Postgres or Redis did not answer. The message names it with its address, and never has a name of a user or a password. */
export class OutOfReach extends Error {}

const outOfReach = (server: string, setting: string, problem: string) =>
  new OutOfReach(`${server} ${problem}. Check ${setting}, and that the server runs and is reachable.`);

/** @param problem what is wrong with it, such as `is unreachable: no answer`. */
export const postgresOutOfReach = (url: string, problem: string, setting = "DATABASE_URL"): OutOfReach =>
  outOfReach(`Postgres at ${postgresAddress(url)}`, setting, problem);
export const redisOutOfReach = (url: string, reason: string): OutOfReach =>
  outOfReach(`Redis at ${hostsOf(url)}`, "REDIS_URL", `is unreachable: ${reason}`);

/** Host and port alone. The URL may name a folder of sockets as its parameter `host`. */
function postgresAddress(url: string): string {
  const { hostname, port, searchParams } = new URL(url);
  return searchParams.get("host") ?? `${hostname || "localhost"}:${port || "5432"}`;
}

/** The first line. An error of a name with several addresses has a message in each of its errors only. */
export function reasonOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const [line = ""] = (first instanceof Error ? first.message : String(first)).split("\n");
  return line.replace(/\.$/, "") || "no answer";
}
