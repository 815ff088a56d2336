import { admissionMutants } from "./admission.ts";
import { deliveryMutants } from "./delivery.ts";
import type { Mutant } from "./mutant.ts";
import { settlingMutants } from "./settling.ts";

export const mutants: readonly Mutant[] = [...admissionMutants, ...settlingMutants, ...deliveryMutants];
