/** The load generator, in its own process, so that its CPU is not counted as the service's. */
import { serve } from "../processes/asked-process.ts";
import { generate } from "./generate.ts";
import { loadSchema } from "./load.ts";

serve((message) => generate(loadSchema.parse(message)));
