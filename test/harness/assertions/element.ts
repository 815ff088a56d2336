import { z } from "zod";
import { result } from "../../../shared/results.ts";

/** What an adapter returns for an element: a result without its rank, which the engine sets. */
export const element = result.omit({ rank: true }).extend({ providerRank: z.int().min(1).exactOptional() });
