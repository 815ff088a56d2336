import { beforeAll } from "vitest";
import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import type { Organization, Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The service and the organization that all bad inputs are sent to. Set before the first test runs. */
export let service: Service;
export let organization: Organization;

beforeAll(async () => {
  service = await usualService();
  organization = await service.organization({ terms: endlessWindow });
});
