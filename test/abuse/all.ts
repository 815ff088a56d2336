import type { Attack } from "./attack.ts";
import { cancelledAnswers } from "./attacks/cancelled-answers.ts";
import { falseRefusals } from "./attacks/false-refusals.ts";
import { firstCopy } from "./attacks/first-copy.ts";
import { floodOfRefusals } from "./attacks/flood-of-refusals.ts";
import { fullRedis } from "./attacks/full-redis.ts";
import { hungUpSearches } from "./attacks/hung-up-searches.ts";
import { keyedAnswers } from "./attacks/keyed-answers.ts";
import { keyedWithoutCredit } from "./attacks/keyed-without-credit.ts";
import { lookalikeHosts } from "./attacks/lookalike-hosts.ts";
import { oddRequests } from "./attacks/odd-requests.ts";
import { pipelinedAnswers } from "./attacks/pipelined-answers.ts";
import { plantedCookies } from "./attacks/planted-cookies.ts";
import { randomTokens } from "./attacks/random-tokens.ts";
import { slowCallers } from "./attacks/slow-callers.ts";
import { stolenLogins } from "./attacks/stolen-logins.ts";
import { unreadAnswers } from "./attacks/unread-answers.ts";
import { vanishedRedis } from "./attacks/vanished-redis.ts";
import { waitingRepeats } from "./attacks/waiting-repeats.ts";
import { fullStrength } from "./attacks/full-strength.ts";

/** Every attack, in the order in which they run. */
export const attacks: readonly Attack[] = [
  cancelledAnswers,
  falseRefusals,
  firstCopy,
  floodOfRefusals,
  fullRedis,
  hungUpSearches,
  keyedAnswers,
  keyedWithoutCredit,
  lookalikeHosts,
  oddRequests,
  pipelinedAnswers,
  plantedCookies,
  randomTokens,
  slowCallers,
  stolenLogins,
  unreadAnswers,
  vanishedRedis,
  waitingRepeats,
  fullStrength,
];
