import { forgetSignIns } from "../clients/page-visitor.ts";
import { type SerperStub, startSerperStub, tenOrganic } from "../stubs/serper-stub.ts";
import { Service } from "./service.ts";

/**
 * Two services for all test files that a vitest worker runs, one after the other, each with an API, a worker and the servers:
 * one that searches the sandbox, and one that searches a stub of Serper. They spare each file the start of its processes, and
 * end with the vitest worker.
 *
 * A file may use one if it leaves the processes, their settings, the plans and the ledger's past as they were, and counts
 * only what its own organizations did. Any other file starts a `Service` of its own.
 */
let usual: Promise<Service> | undefined;
let stubbed: Promise<{ service: Service; stub: SerperStub }> | undefined;

/** The service with the sandbox, at rest, with empty logs. `apis`: how many APIs the file needs at least. */
export async function usualService({ apis = 1 }: { apis?: number } = {}): Promise<Service> {
  usual ??= Service.start();
  return prepared(await usual, apis);
}

/** The service with a stub of Serper, which answers at once and has seen nothing; otherwise as {@link usualService}. */
export async function stubbedService({ apis = 1 }: { apis?: number } = {}) {
  stubbed ??= startSerperStub().then(async (stub) => ({
    stub,
    service: await Service.start({ environment: stub.settings }),
  }));
  const { service, stub } = await stubbed;
  stub.requests.length = 0;
  stub.next.length = 0;
  stub.otherwise = tenOrganic;
  return { service: await prepared(service, apis), stub };
}

async function prepared(service: Service, apis: number): Promise<Service> {
  while (service.apis.length < apis) await service.startApi();
  await service.rest();
  for (const process of [...service.apis, ...service.workers]) process.lines.length = 0;
  await forgetSignIns(service);
  return service;
}
