import { forgetSignIns, PageVisitor } from "../../harness/clients/page-visitor.ts";
import type { AttackStack } from "../attack-stack.ts";

/** A browser that is signed in with a token, from one address. The limit of sign-ins from it is no part of the attack. */
export async function signedIn({ service }: Pick<AttackStack, "service">, token: string): Promise<PageVisitor> {
  const visitor = new PageVisitor(service);
  await forgetSignIns(service);
  const { status } = await visitor.signIn(token);
  if (status !== 303) throw new Error(`the sign-in was refused: ${status}`);
  return visitor;
}
