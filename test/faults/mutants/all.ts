import { admissionMutants } from "./admission.ts";
import { answerMutants } from "./answers.ts";
import { correctionMutants } from "./corrections.ts";
import { deliveryMutants } from "./delivery.ts";
import { disconnectMutants } from "./disconnects.ts";
import { limitMutants } from "./limits.ts";
import type { Mutant } from "./mutant.ts";
import { scopeMutants } from "./scopes.ts";
import { settlingMutants } from "./settling.ts";
import { spendingLimitMutants } from "./spending-limits.ts";

export const mutants: readonly Mutant[] = [
  ...admissionMutants,
  ...answerMutants,
  ...settlingMutants,
  ...deliveryMutants,
  ...disconnectMutants,
  ...limitMutants,
  ...scopeMutants,
  ...spendingLimitMutants,
  ...correctionMutants,
];
