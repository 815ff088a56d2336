import type { Attack } from "./attack.ts";
import { crowdedAdaptiveLimit, crowdedFixedLimit } from "./attacks/crowded-provider.ts";
import { fullRedis } from "./attacks/full-redis.ts";
import { fullStrength } from "./attacks/full-strength.ts";
import { hammeredLimits } from "./attacks/hammered-limits.ts";
import { hugePages } from "./attacks/huge-pages.ts";
import { limitedTokens } from "./attacks/limited-tokens.ts";
import { unreadStreams } from "./attacks/unread-streams.ts";
import { untakenPairs } from "./attacks/untaken-pairs.ts";

/** Every attack, in the order in which they run. */
export const attacks: readonly Attack[] = [
  crowdedAdaptiveLimit,
  crowdedFixedLimit,
  fullRedis,
  hammeredLimits,
  hugePages,
  limitedTokens,
  unreadStreams,
  untakenPairs,
  fullStrength,
];
