import { z } from "zod";
import type { LocationRow } from "../../locations/listed-location.ts";
import { locationRowsMax, parseList, toRows } from "../location-rows.ts";
import type { Failure, PageAnswer } from "../provider.ts";

/** GET /locations.json without a filter, the whole list as an array (serpapi.com/locations-api). */

const listSchema = z.array(z.unknown()).max(locationRowsMax);
const rowSchema = z
  .object({ canonical_name: z.string(), country_code: z.string().nullable(), target_type: z.string() })
  .transform(({ canonical_name: name, country_code: countryCode, target_type: type }) => {
    return { name, countryCode: countryCode ?? "", type };
  });

export function readLocations({ status, body }: PageAnswer): LocationRow[] | Failure {
  if (status === 429) return { failure: "rate_limited" };
  if (status === 401 || status === 402 || status === 403) return { failure: "account_refused" };
  if (status === 408 || status >= 500) return { failure: "unavailable" };
  if (status !== 200) return { failure: status >= 400 ? "request_refused" : "unreadable" };
  const list = listSchema.safeParse(parseList(body)).data;
  return list === undefined ? { failure: "unreadable" } : toRows(list, rowSchema);
}
