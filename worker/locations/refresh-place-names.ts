import { buffer } from "node:stream/consumers";
import { unzipSync } from "fflate";
import { Agent, request } from "undici";
import type { Database } from "../../shared/database/pool.ts";
import { readPlaceNames, storePlaceNames } from "./place-names.ts";
import type { RefreshProblem } from "./refresh-list.ts";
import type { RecordList, StoredList } from "./stored-lists.ts";

/** The archive has some 3 MB today, and the file in it 10 MB. */
const archiveBytesMax = 64 * 1024 * 1024;
const fileBytesMax = 256 * 1024 * 1024;
const fetchTimeoutMs = 300_000;
/** Today there are three times as many. With fewer, the answer is a part of the file, or something else. */
const placesMin = 10_000;

/**
 * Fetches the cities of GeoNames with their names in all languages, and stores them in place of the old ones. A file that is
 * incomplete or not readable is refused, and the stored names stay.
 * @param options.url a zip archive with one file in the format of GeoNames' `cities15000.txt`.
 */
export async function refreshPlaceNames(options: {
  url: string;
  database: Database;
  onProgress: (step: string) => void;
  record?: RecordList;
}): Promise<StoredList | RefreshProblem> {
  const { url, database, onProgress, record } = options;
  onProgress("fetching the names");
  const archive = await fetchArchive(url);
  if ("problem" in archive) return archive;
  const read = readArchive(archive);
  if (read === undefined) return { problem: "returned a file that is incomplete, too large or not readable" };
  const { places, names } = read;
  if (places < placesMin) return { problem: `returned ${places} cities, which is not the whole file` };
  onProgress(`read ${places} cities with ${names.length} names`);
  const onStored = (stored: number) => onProgress(`stored ${stored} of ${names.length}`);
  return storePlaceNames(database, read, { onProgress: onStored, record });
}

async function fetchArchive(url: string): Promise<Buffer | RefreshProblem> {
  const agent = new Agent({ maxResponseSize: archiveBytesMax, headersTimeout: 0, bodyTimeout: 0 });
  try {
    const answer = await request(url, { dispatcher: agent, signal: AbortSignal.timeout(fetchTimeoutMs) });
    const body = await buffer(answer.body);
    return answer.statusCode === 200 ? body : { problem: `answered with status ${answer.statusCode}` };
  } catch (error) {
    const isLate = error instanceof Error && error.name === "TimeoutError";
    return { problem: isLate ? "did not send the file in time" : "is unreachable or broke the answer off" };
  } finally {
    await agent.destroy();
  }
}

function readArchive(archive: Uint8Array) {
  try {
    const files = unzipSync(archive, {
      filter: ({ name, originalSize }) => name.endsWith(".txt") && originalSize <= fileBytesMax,
    });
    const [file] = Object.values(files);
    return file && readPlaceNames(new TextDecoder("utf-8", { fatal: true }).decode(file));
  } catch {
    return undefined;
  }
}
