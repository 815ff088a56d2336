import type { Attack } from "./attack.ts";
import { cancelledAnswers } from "./attacks/cancelled-answers.ts";
import { firstCopy } from "./attacks/first-copy.ts";
import { lookalikeHosts } from "./attacks/lookalike-hosts.ts";
import { pipelinedAnswers } from "./attacks/pipelined-answers.ts";

/** Every attack, in the order in which they run. */
export const attacks: readonly Attack[] = [pipelinedAnswers, cancelledAnswers, firstCopy, lookalikeHosts];
