import type { Querying } from "../shared/database/transaction.ts";
import { isErased } from "../shared/organizations/organizations.ts";
import { CommandRefused } from "./command-refused.ts";

/** @throws {CommandRefused} if the organization was erased: it never gets credit, tokens or a plan again. */
export async function refuseErased(transaction: Querying, organizationId: string): Promise<void> {
  if (await isErased(transaction, organizationId))
    throw new CommandRefused(`The organization ${organizationId} was erased.`);
}
