import type { Attack } from "./attack.ts";
import { crowdedAdaptiveLimit, crowdedFixedLimit } from "./attacks/crowded-provider.ts";
import { crowdedSignIns } from "./attacks/crowded-sign-ins.ts";
import { crowdedStreams } from "./attacks/crowded-streams.ts";
import { disconnectedSearches } from "./attacks/disconnected-searches.ts";
import { falseRefusals } from "./attacks/false-refusals.ts";
import { fullRedis } from "./attacks/full-redis.ts";
import { fullStrength } from "./attacks/full-strength.ts";
import { halfOpenInbox } from "./attacks/half-open-inbox.ts";
import { hammeredLimits } from "./attacks/hammered-limits.ts";
import { hugePages } from "./attacks/huge-pages.ts";
import { impatientClients } from "./attacks/impatient-clients.ts";
import { lastKilobyte } from "./attacks/last-kilobyte.ts";
import { limitedTokens } from "./attacks/limited-tokens.ts";
import { loweredLimits } from "./attacks/lowered-limits.ts";
import { oneKeyManyQueries } from "./attacks/one-key.ts";
import { signatureFlood } from "./attacks/signature-flood.ts";
import { cancelledAnswers, firstCopy, pipelinedAnswers } from "./attacks/unpaid-copies.ts";
import { unreadAnswers } from "./attacks/unread-answers.ts";
import { unreadStreams } from "./attacks/unread-streams.ts";
import { untakenPairs } from "./attacks/untaken-pairs.ts";

/** Every attack, in the order in which they run. */
export const attacks: readonly Attack[] = [
  cancelledAnswers,
  crowdedAdaptiveLimit,
  crowdedFixedLimit,
  crowdedSignIns,
  crowdedStreams,
  falseRefusals,
  firstCopy,
  fullRedis,
  halfOpenInbox,
  hammeredLimits,
  hugePages,
  disconnectedSearches,
  impatientClients,
  lastKilobyte,
  limitedTokens,
  loweredLimits,
  oneKeyManyQueries,
  pipelinedAnswers,
  signatureFlood,
  unreadAnswers,
  unreadStreams,
  untakenPairs,
  fullStrength,
];
