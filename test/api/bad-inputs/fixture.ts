import { afterAll, beforeAll } from "vitest";
import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";

/** The service and the organization that all bad inputs are sent to. Set before the first test runs. */
export let service: Service;
export let organization: Organization;

beforeAll(async () => {
  service = await Service.start();
  organization = await service.organization({ terms: endlessWindow });
});
afterAll(() => service.stop());
