import type { Attack } from "./attack.ts";
import { cancelledAnswers } from "./attacks/cancelled-answers.ts";
import { craftedInputs } from "./attacks/crafted-inputs.ts";
import { crowdedAdaptiveLimit, crowdedFixedLimit } from "./attacks/crowded-provider.ts";
import { crowdedSignIns } from "./attacks/crowded-sign-ins.ts";
import { crowdedStreams } from "./attacks/crowded-streams.ts";
import { falseRefusals } from "./attacks/false-refusals.ts";
import { firstCopy } from "./attacks/first-copy.ts";
import { floodOfRefusals } from "./attacks/flood-of-refusals.ts";
import { foreignCheckout } from "./attacks/foreign-checkout.ts";
import { fullRedis } from "./attacks/full-redis.ts";
import { halfOpenInbox } from "./attacks/half-open-inbox.ts";
import { hammeredLimits } from "./attacks/hammered-limits.ts";
import { hiddenChanges } from "./attacks/hidden-changes.ts";
import { hugePages } from "./attacks/huge-pages.ts";
import { disconnectedSearches } from "./attacks/disconnected-searches.ts";
import { keyedAnswers } from "./attacks/keyed-answers.ts";
import { keyedWithoutCredit } from "./attacks/keyed-without-credit.ts";
import { lastKilobyte } from "./attacks/last-kilobyte.ts";
import { limitedTokens } from "./attacks/limited-tokens.ts";
import { lookalikeHosts } from "./attacks/lookalike-hosts.ts";
import { loweredLimits } from "./attacks/lowered-limits.ts";
import { manyOrganizations } from "./attacks/many-organizations.ts";
import { oddRequests } from "./attacks/odd-requests.ts";
import { oneKeyManyQueries } from "./attacks/one-key-many-queries.ts";
import { outlivingTokens } from "./attacks/outliving-tokens.ts";
import { pipelinedAnswers } from "./attacks/pipelined-answers.ts";
import { plantedCookies } from "./attacks/planted-cookies.ts";
import { randomTokens } from "./attacks/random-tokens.ts";
import { signatureFlood } from "./attacks/signature-flood.ts";
import { slowCallers } from "./attacks/slow-callers.ts";
import { stolenLogins } from "./attacks/stolen-logins.ts";
import { unreadAnswers } from "./attacks/unread-answers.ts";
import { unreadStreams } from "./attacks/unread-streams.ts";
import { unsupportedQueries } from "./attacks/unsupported-queries.ts";
import { untakenPairs } from "./attacks/untaken-pairs.ts";
import { vanishedRedis } from "./attacks/vanished-redis.ts";
import { waitingRepeats } from "./attacks/waiting-repeats.ts";
import { fullStrength } from "./attacks/full-strength.ts";

/** Every attack, in the order in which they run. */
export const attacks: readonly Attack[] = [
  cancelledAnswers,
  craftedInputs,
  crowdedAdaptiveLimit,
  crowdedFixedLimit,
  crowdedSignIns,
  crowdedStreams,
  falseRefusals,
  firstCopy,
  floodOfRefusals,
  foreignCheckout,
  fullRedis,
  halfOpenInbox,
  hammeredLimits,
  hiddenChanges,
  hugePages,
  disconnectedSearches,
  keyedAnswers,
  keyedWithoutCredit,
  lastKilobyte,
  limitedTokens,
  lookalikeHosts,
  loweredLimits,
  manyOrganizations,
  oddRequests,
  oneKeyManyQueries,
  outlivingTokens,
  pipelinedAnswers,
  plantedCookies,
  randomTokens,
  signatureFlood,
  slowCallers,
  stolenLogins,
  unreadAnswers,
  unreadStreams,
  unsupportedQueries,
  untakenPairs,
  vanishedRedis,
  waitingRepeats,
  fullStrength,
];
