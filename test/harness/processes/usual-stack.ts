import { forgetSignIns } from "../clients/page-visitor.ts";
import { Service } from "./service.ts";

/**
 * One service for all test files that a vitest worker runs, one after the other: an API, a worker with the sandbox, and the
 * servers. It spares each file the start of its processes. It ends with the vitest worker.
 *
 * A file may use it if it leaves the processes, their settings, the plans and the ledger's past as they were, and counts
 * only what its own organizations did. Any other file starts a `Service` of its own.
 */
let starting: Promise<Service> | undefined;

/** The service of this vitest worker, at rest, with empty logs. `apis`: how many APIs the file needs at least. */
export async function usualService({ apis = 1 }: { apis?: number } = {}): Promise<Service> {
  starting ??= Service.start();
  const service = await starting;
  while (service.apis.length < apis) await service.startApi();
  await service.rest();
  for (const process of [...service.apis, ...service.workers]) process.lines.length = 0;
  await forgetSignIns(service);
  return service;
}
