import { z } from "zod";
import type { LocationRow } from "../../locations/listed-location.ts";
import { locationRowsMax, parseList, toRows } from "../location-rows.ts";
import type { Failure, PageAnswer } from "../provider.ts";
import { failureOfHttpStatus, failureOfStatus, statusOk } from "./status-codes.ts";

/** GET /v3/serp/google/locations, the whole list in one answer (docs.dataforseo.com/v3/serp/google/locations). */

const statusSchema = z.object({ status_code: z.int(), status_message: z.string().catch("") });
const answerSchema = statusSchema.extend({
  tasks: z
    .tuple([
      statusSchema.extend({
        result_count: z.int().catch(-1),
        result: z.array(z.unknown()).max(locationRowsMax).nullable().catch(null),
      }),
    ])
    .optional()
    .catch(undefined),
});
const rowSchema = z
  .object({ location_name: z.string(), country_iso_code: z.string().nullable(), location_type: z.string() })
  .transform(({ location_name: name, country_iso_code: countryCode, location_type: type }) => {
    return { name, countryCode: countryCode ?? "", type };
  });

export function readLocations({ status, body }: PageAnswer): LocationRow[] | Failure {
  const answer = answerSchema.safeParse(parseList(body)).data;
  const outcome = answer?.status_code === statusOk ? answer.tasks?.[0] : answer;
  if (outcome !== undefined && outcome.status_code !== statusOk) return failureOfStatus(outcome);
  if (status !== 200) return failureOfHttpStatus(status);
  const task = answer?.tasks?.[0];
  // The answer says how many rows it has: fewer are a part of the list.
  if (!task?.result || task.result.length !== task.result_count) return { failure: "unreadable" };
  return toRows(task.result, rowSchema);
}
