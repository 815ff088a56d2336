import { doorNames } from "../../../shared/config.ts";
import { forgetSignIns } from "../clients/page-visitor.ts";
import { Service } from "./service.ts";

/** The host of the door `searxng`. */
export const doorHost = "searxng.serp.example";
/** How long all doors wait for a search. */
export const doorPatience = (ms: number) => ({
  COMPAT_PATIENCE_MS: doorNames.map((name) => `${name}=${ms}`).join(","),
});
const openDoors = { COMPAT_DOORS: doorNames.join(","), COMPAT_HOSTS: `searxng=${doorHost}`, ...doorPatience(60_000) };

/**
 * A service for all test files that a vitest worker runs, one after the other: an API, a worker and the servers. It spares each
 * file the start of its processes, and ends with the vitest worker. It searches the sandbox, and all doors are open.
 *
 * A file may use it if it leaves the processes, their settings, the plans and the ledger's past as they were, and counts
 * only what its own organizations did. Any other file starts a `Service` of its own.
 */
let usual: Promise<Service> | undefined;

/** The service at rest, with empty logs. `apis`: how many APIs the file needs at least. */
export async function usualService({ apis = 1 }: { apis?: number } = {}): Promise<Service> {
  usual ??= Service.start({ environment: openDoors });
  const service = await usual;
  while (service.apis.length < apis) await service.startApi();
  await service.rest();
  for (const process of [...service.apis, ...service.workers]) process.lines.length = 0;
  await forgetSignIns(service);
  return service;
}
