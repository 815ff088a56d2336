/** `npm run abuse`: attacks the running service as a malicious caller would, and reports which promises held. */
import { Command } from "commander";
import { startPostgres } from "../../local/postgres.ts";
import { attacks } from "./all.ts";
import { type Attack, type AttackRow, rowsOf } from "./attack.ts";
import { type AttackServers, withAttackStack } from "./attack-stack.ts";
import { reportOf } from "./report.ts";

const say = (line: string) => void process.stderr.write(`${line}\n`);
const attackNames = attacks.map(({ name }) => name).join(", ");

/** Runs an attack on a service of its own. One that fails itself says nothing about the promise, and so ends the command. */
const strike = (attack: Attack, servers: AttackServers): Promise<AttackRow[]> =>
  withAttackStack(servers, attack.stack, async (stack) => {
    say(`${attack.name}: ${attack.tried}`);
    const rows = rowsOf(attack, await attack.run(stack, "full"));
    for (const { promised, seen, held } of rows) say(`  ${held ? "held" : "NOT HELD"}: ${promised}: ${seen}`);
    return rows;
  });

async function run({ only }: { only?: string }): Promise<void> {
  const chosen = attacks.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0) throw new Error(`There is no attack ${only}. Known: ${attackNames}.`);
  const postgres = await startPostgres();
  const rows: AttackRow[] = [];
  try {
    for (const attack of chosen) rows.push(...(await strike(attack, { postgresUrl: postgres.url, say })));
  } finally {
    await postgres.stop();
  }
  process.stdout.write(`${reportOf(rows)}\n`);
  const broken = rows.filter(({ held }) => !held).length;
  process.stdout.write(broken === 0 ? "Every promise held.\n" : `${broken} of ${rows.length} promises did not hold.\n`);
  process.exitCode = broken === 0 ? 0 : 1;
}

const program = new Command("npm run abuse --")
  .description(
    "Attacks the service from outside, with servers and processes of its own, and reports which promises held: " +
      "that no caller gets an answer for nothing, and that none stops the others.",
  )
  .option("--only <name>", `only this attack, one of ${attackNames}`)
  .showHelpAfterError()
  .action(run);

try {
  await program.parseAsync();
} catch (error) {
  // Not 1: a run that failed says nothing about the promise.
  say(String(error instanceof Error ? error.stack : error));
  process.exitCode = 2;
}
