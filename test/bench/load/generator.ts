/** The load generator: a process of its own, so that its CPU is not that of the service. */
import { serve } from "../processes/asked-process.ts";
import { generate } from "./generate.ts";
import { loadSchema } from "./load.ts";

serve((message) => generate(loadSchema.parse(message)));
