import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The service and the organization that all bad inputs are sent to. */

export const service = await usualService();
export const organization = await service.organization({ terms: endlessWindow });
