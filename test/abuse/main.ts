/** `npm run abuse`: attacks the running service as a malicious caller would, and reports which promises held. */
import { Command, Option } from "commander";
import { startPostgres } from "../../local/postgres.ts";
import { conclude, type Row, runCommand, say } from "../faults/report.ts";
import type { ScenarioServers } from "../faults/scenarios/scenario-stack.ts";
import { attacks } from "./all.ts";
import type { Attack } from "./attack.ts";
import { withAttackStack } from "./attack-stack.ts";

/** Attacks a service of its own with full force. */
const strike = (attack: Attack, servers: ScenarioServers): Promise<Row[]> =>
  withAttackStack(servers, attack.stack, async (stack) => {
    const what = `${attack.name}: ${attack.tried}`;
    say(what);
    const findings = await attack.run(stack, "full");
    for (const { promised, seen, held } of findings) say(`  ${held ? "held" : "NOT HELD"}: ${promised}: ${seen}`);
    return findings.map((finding) => ({ what, ...finding }));
  });

async function run({ only }: { only?: string }): Promise<void> {
  const chosen = attacks.filter(({ name }) => only === undefined || name === only);
  const postgres = await startPostgres();
  const rows: Row[] = [];
  try {
    for (const attack of chosen) rows.push(...(await strike(attack, { postgresUrl: postgres.url, say })));
  } finally {
    await postgres.stop();
  }
  conclude(rows);
}

const program = new Command("npm run abuse --")
  .description(
    "Attacks the service from outside, with its own servers and processes, and reports whether an attacker got an answer " +
      "for free or starved other callers.",
  )
  .addOption(new Option("--only <name>", "only this attack").choices(attacks.map(({ name }) => name)))
  .showHelpAfterError()
  .action(run);

await runCommand(program);
