import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { type FileHandle, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline, Readable } from "node:stream";
import { pipeline as pipelineEnded } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { z } from "zod";
import { recordAudit } from "../../shared/audit/audit.ts";
import { countOpenGaps } from "../../shared/credits/ledger-gaps.ts";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import { CommandRefused, openNew } from "../refusals.ts";
import type { CommandContext } from "../run-command.ts";
import { monthEnds, type MonthTotals, readMonthLines } from "./month-lines.ts";

/** Longer than a line of an archive can be. */
const lineLengthMax = 100_000;
/** A month of a large installation takes minutes, and the operator sees how far it is. */
const progressMs = 5_000;

interface Archive extends MonthTotals {
  month: string;
  file: string;
  /** Of the file; `FILE.sha256` has it too. */
  sha256: string;
}

/**
 * Writes the archive of a month, and its checksum beside it. Each has another name until it is complete and on the disk. An archive
 * that exists is compared with the ledger instead.
 * @throws {CommandRefused} if the month is not over, the file cannot be made, or the existing one differs.
 */
export async function exportMonth(
  context: CommandContext,
  { month, folder }: { month: string; folder: string },
): Promise<Archive & { isNew: boolean }> {
  await requireEnded(context.database, month);
  const file = join(folder, `ledger-${month}.ndjson.gz`);
  if (existsSync(file)) return { ...(await checkArchive(context, file)), isNew: false };
  const unfinished = `${file}.unfinished`;
  const handle = await openNew(unfinished);
  try {
    await recordAudit(context.database, { actor: context.actor, action: "ledger.exported", subject: month });
    const { sha256, totals } = await writeMonth(context, handle, month);
    // The checksum first: where the archive is, its checksum is too.
    await replaceFile(checksumOf(file), `${sha256}  ${basename(file)}\n`);
    await rename(unfinished, file);
    await syncFolder(folder);
    return { month, file, ...totals, sha256, isNew: true };
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/**
 * Compares an archive with its checksum, and then each of its lines with the ledger.
 * @throws {CommandRefused} if they differ.
 */
export async function checkArchive(context: CommandContext, file: string): Promise<Archive> {
  const sha256 = await requireChecksum(file);
  const archived = linesOf(file);
  let found = await archived.next();
  const month = monthOf(file, found.value);
  let line = 1;
  let end: MonthTotals | undefined;
  for await (const { lines, totals } of readMonth(context, month)) {
    for (const text of lines) {
      if (found.value !== text)
        throw new CommandRefused(`${file} differs from the ledger in line ${line}. Do not rely on it.`);
      found = await archived.next();
      line += 1;
    }
    end = totals;
  }
  if (found.done !== true || !end) throw new CommandRefused(`${file} has more than the ledger, from line ${line} on.`);
  return { month, file, ...end, sha256 };
}

const endRow = rowOf({ hasEnded: z.boolean(), time: z.date() });

/** Entries of a month may be committed for seconds after its end, and the clocks of machines differ. */
async function requireEnded(database: Database, month: string): Promise<void> {
  const { rows } = await database.query(
    `select now() >= t.time as has_ended, t.time from (select ${monthEnds} + interval '1 hour' as time) t`,
    [month],
  );
  const { hasEnded, time } = endRow.parse(rows[0]);
  if (!hasEnded) throw new CommandRefused(`${month} is not over: it can be archived from ${time.toISOString()} on.`);
}

async function writeMonth(context: CommandContext, handle: FileHandle, month: string) {
  const hash = createHash("sha256");
  let end: MonthTotals = { organizations: 0, entries: 0, amountMils: 0 };
  const texts = async function* () {
    for await (const { lines, totals } of readMonth(context, month)) {
      end = totals;
      yield `${lines.join("\n")}\n`;
    }
  };
  await pipelineEnded(Readable.from(texts()), createGzip(), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      hash.update(chunk);
      await handle.writeFile(chunk); // All of it, behind what was written.
    }
  });
  await handle.sync();
  return { sha256: hash.digest("hex"), totals: end };
}

async function* readMonth({ database, warn }: CommandContext, month: string) {
  const { gaps } = await countOpenGaps(database);
  if (gaps > 0)
    warn(
      `Postgres has lost entries (open gaps: ${gaps}): ledger gaps lists them. The ledger of ${month} may lack some.`,
    );
  let saidAtMs = performance.now();
  for await (const read of readMonthLines(database, month)) {
    yield read;
    if (performance.now() - saidAtMs < progressMs) continue;
    saidAtMs = performance.now();
    warn(`Read so far: ${read.totals.entries} entries of ${read.totals.organizations} organizations.`);
  }
}

const checksumOf = (file: string) => `${file}.sha256`;

/** @returns the checksum of the file. @throws {CommandRefused} if it is not the one beside it. */
async function requireChecksum(file: string): Promise<string> {
  const hash = createHash("sha256");
  try {
    // First: what has none is no archive, and a device may have no end.
    const expected = await readFile(checksumOf(file), "utf8");
    for await (const chunk of createReadStream(file)) hash.update(chunk);
    const sha256 = hash.digest("hex");
    if (expected.startsWith(`${sha256} `)) return sha256;
  } catch (error) {
    throw unreadable(file, error);
  }
  throw new CommandRefused(`${file} does not match ${checksumOf(file)}: one of them was changed or is damaged.`);
}

/** Reads a compressed file line by line, in bounded memory whatever it contains. */
async function* linesOf(file: string): AsyncGenerator<string, undefined> {
  const text = pipeline(createReadStream(file), createGunzip(), () => undefined).setEncoding("utf8");
  let rest = "";
  try {
    for await (const chunk of text) {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
      if (rest.length > lineLengthMax) break;
    }
  } catch (error) {
    throw unreadable(file, error);
  }
  if (rest !== "") throw new CommandRefused(`${file} does not end with a whole line.`);
}

const header = z.object({ kind: z.literal("ledger"), month: z.string().regex(/^\d{4}-(0[1-9]|1[0-2])$/) });

function monthOf(file: string, line: string | undefined): string {
  try {
    return header.parse(JSON.parse(line ?? "")).month;
  } catch {
    throw new CommandRefused(`${file} is no archive of the ledger.`);
  }
}

const unreadable = (file: string, error: unknown) =>
  new CommandRefused(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`);

/** Writes a file that is whole or not there, also after a crash. */
async function replaceFile(file: string, text: string): Promise<void> {
  const unfinished = `${file}.unfinished`;
  await writeFile(unfinished, text, { mode: 0o600, flush: true });
  await rename(unfinished, file);
}

/** So that the names in it are on the disk too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
