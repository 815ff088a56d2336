import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { readSource } from "../assertions/sources.ts";
import { GuardedFolder } from "./guarded-folder.ts";

/**
 * What an upgrade replaces, and what it migrates to. The last release is the newest tag `v*` in the history of this checkout. Before
 * the first tag this checkout stands for it, and the schema of this release is its own with one migration more.
 */

const root = fileURLToPath(new URL("../../../", import.meta.url));
const parts = ["api", "worker", "shared", "package.json"];
const archiveBytesMax = 100_000_000;

/** What a release may change while processes of the last one run. The privileges follow with the last of these. */
const nextMigrations = [
  `-- Functions that processes call at every search, replaced by ones of the same text.
do $$
declare
  called text;
  definition text;
begin
  foreach called in array '{charge_alone,decide_searches,reverse_charges}'::text[] loop
    definition := pg_get_functiondef(called::regproc);
    execute format('drop function %s', called);
    execute definition;
  end loop;
end $$;
`,
  `-- Adds columns, a rule for rows that are written from now on, a table and a function.
alter table organizations add column colour text;
alter table ledger_entries add column colour text;
alter table answers add column colour text;
alter table undelivered add column colour text;
alter table organizations add constraint colour_is_short check (length(colour) < 20) not valid;
create table colours (organization_id text collate "C" primary key references organizations (id), colour text not null);
create function colour_of(organization text) returns text language sql security definer set search_path = public, pg_temp as $$
  select colour from organizations where id = organization
$$;
`,
  `-- A table of its own.
create table shades (colour text primary key);
`,
];

export interface Upgrade {
  /** The folder of the last release. */
  last: string;
  /** Whether it is another release than this checkout. */
  isReleased: boolean;
  /** The folder of the migrations to which the upgrade leads. */
  migrations: string;
  remove: () => void;
}

/** Unpacks the last release, which runs with the packages of this checkout. @throws {Error} from v1.0.0 on, if there is no tag. */
export async function prepareUpgrade(): Promise<Upgrade> {
  const migrations = join(root, "shared/database/migrations");
  const tag = lastTag();
  const folder = await GuardedFolder.create("serpmill-last-release-");
  const remove = () => folder.remove();
  if (tag === undefined) {
    await cp(migrations, folder.path, { recursive: true });
    for (const [at, text] of nextMigrations.entries())
      await writeFile(join(folder.path, `${900 + at}.do.next-release.sql`), text);
    return { last: root, isReleased: false, migrations: folder.path, remove };
  }
  execFileSync("tar", ["--extract", "--directory", folder.path], { input: git("archive", tag, ...parts) });
  symlinkSync(join(root, "node_modules"), join(folder.path, "node_modules"));
  return { last: folder.path, isReleased: true, migrations, remove };
}

function lastTag(): string | undefined {
  try {
    return git("describe", "--tags", "--abbrev=0", "--match", "v*").toString().trim();
  } catch (cause) {
    const { version } = z.object({ version: z.string() }).parse(JSON.parse(readSource("package.json")));
    if (version.startsWith("0.")) return undefined;
    throw new Error(`package.json has version ${version}, but no release is tagged: git fetch --tags`, { cause });
  }
}

function git(...args: string[]): Buffer {
  return execFileSync("git", ["-C", root, ...args], {
    maxBuffer: archiveBytesMax,
    stdio: ["ignore", "pipe", "ignore"],
  });
}
