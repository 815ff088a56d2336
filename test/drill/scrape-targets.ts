import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import type { Service } from "../harness/processes/service.ts";

const deployFolder = fileURLToPath(new URL("../../deploy/", import.meta.url));

const scrape = z.looseObject({ job_name: z.string() });
/** No drill would be quiet with it. */
const alwaysFires = "watchdog.yml";
const shipped = z.looseObject({ rule_files: z.array(z.string()), scrape_configs: z.array(scrape) });

/**
 * The shipped configuration of Prometheus with the addresses of a drill. Rules, jobs and intervals are the shipped ones. Files
 * replace DNS; as there, a process that has ended is no longer a target after 10 s. The job `node` is left out, because it
 * watches the disks of the machine.
 */
export function configOf(
  text: string,
  addresses: { own: string; alertmanager: string; targets: { folder: string } },
): string {
  const { own, alertmanager, targets } = addresses;
  const { rule_files, scrape_configs, ...rest } = shipped.parse(parse(text));
  const fixed: Record<string, string> = { prometheus: own, alertmanager };
  return stringify({
    ...rest,
    rule_files: rule_files.filter((file) => file !== alwaysFires).map((file) => join(deployFolder, "prometheus", file)),
    alerting: { alertmanagers: [{ static_configs: [{ targets: [alertmanager] }] }] },
    scrape_configs: scrape_configs
      .filter(({ job_name }) => job_name !== "node")
      .map(({ job_name }) => {
        const address = fixed[job_name];
        if (address !== undefined) return { job_name, static_configs: [{ targets: [address] }] };
        return { job_name, file_sd_configs: [{ files: [fileOf(targets.folder, job_name)] }] };
      }),
  });
}

const fileOf = (folder: string, job: string) => join(folder, `${job}.json`);
// As refresh_interval in the shipped configuration.
const refreshMs = 10_000;

/** Updates the files in which Prometheus finds the processes of a service. @returns their folder. */
export async function openScrapeTargets({ apis, workers }: Service): Promise<{ folder: string; close: () => void }> {
  const guarded = await GuardedFolder.create("serpmill-targets-");
  const folder = guarded.path;
  const write = async () => {
    for (const [job, processes] of Object.entries({ api: apis, worker: workers })) {
      const running = processes.filter(({ hasEnded }) => !hasEnded);
      const targets = running.map(({ opsUrl }) => new URL(opsUrl).host);
      await writeFile(fileOf(folder, job), JSON.stringify([{ targets }]));
    }
  };
  await write();
  const timer = setInterval(() => void write(), refreshMs);
  const close = () => {
    clearInterval(timer);
    guarded.remove();
  };
  return { folder, close };
}
