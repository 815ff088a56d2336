import type { Attack } from "./attack.ts";
import { cancelledForms } from "./attacks/cancelled-forms.ts";
import { confusedDoors } from "./attacks/confused-doors.ts";
import { crowdedAdaptiveLimit, crowdedFixedLimit } from "./attacks/crowded-provider.ts";
import { crowdedSignIns } from "./attacks/crowded-sign-ins.ts";
import { crowdedStreams } from "./attacks/crowded-streams.ts";
import { disconnectedSearches } from "./attacks/disconnected-searches.ts";
import { falseRefusals } from "./attacks/false-refusals.ts";
import { foreignCheckout } from "./attacks/foreign-checkout.ts";
import { fullRedis } from "./attacks/full-redis.ts";
import { fullStrength } from "./attacks/full-strength.ts";
import { halfOpenInbox } from "./attacks/half-open-inbox.ts";
import { hammeredLimits } from "./attacks/hammered-limits.ts";
import { hiddenChanges } from "./attacks/hidden-changes.ts";
import { hugePages } from "./attacks/huge-pages.ts";
import { impatientClients } from "./attacks/impatient-clients.ts";
import { keyedAnswers } from "./attacks/keyed-answers.ts";
import { lastKilobyte } from "./attacks/last-kilobyte.ts";
import { leakingAddresses } from "./attacks/leaking-addresses.ts";
import { limitedTokens } from "./attacks/limited-tokens.ts";
import { lookalikeHosts } from "./attacks/lookalike-hosts.ts";
import { loweredLimits } from "./attacks/lowered-limits.ts";
import { manyOrganizations } from "./attacks/many-organizations.ts";
import { oddRequests } from "./attacks/odd-requests.ts";
import { oneKeyManyQueries, waitingRepeats } from "./attacks/one-key.ts";
import { outlivingTokens } from "./attacks/outliving-tokens.ts";
import { plantedCookies } from "./attacks/planted-cookies.ts";
import { floodOfRefusals, keyedWithoutCredit, randomTokens, unsupportedQueries } from "./attacks/refused-floods.ts";
import { signatureFlood } from "./attacks/signature-flood.ts";
import { slowCallers } from "./attacks/slow-callers.ts";
import { stolenLogins } from "./attacks/stolen-logins.ts";
import { cancelledAnswers, firstCopy, pipelinedAnswers } from "./attacks/unpaid-copies.ts";
import { unreadAnswers } from "./attacks/unread-answers.ts";
import { unreadStreams } from "./attacks/unread-streams.ts";
import { untakenPairs } from "./attacks/untaken-pairs.ts";

/** Every attack, in the order in which they run. */
export const attacks: readonly Attack[] = [
  cancelledAnswers,
  cancelledForms,
  confusedDoors,
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
  impatientClients,
  keyedAnswers,
  keyedWithoutCredit,
  lastKilobyte,
  leakingAddresses,
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
  waitingRepeats,
  fullStrength,
];
