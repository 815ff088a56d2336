import type { Querying } from "../shared/database/transaction.ts";
import { isErased } from "../shared/organizations/organizations.ts";

/** The command was refused. The message is the sentence that the operator gets, without a stack. */
export class CommandRefused extends Error {}

/** @throws {CommandRefused} if the organization was erased: it never gets credit, tokens or a plan again. */
export async function refuseErased(transaction: Querying, organizationId: string): Promise<void> {
  if (await isErased(transaction, organizationId))
    throw new CommandRefused(`The organization ${organizationId} was erased.`);
}
