import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { type LocalServer, startServer } from "../../../local/local-server.ts";
import { GuardedFolder } from "../processes/guarded-folder.ts";

const program = "prometheus";

/** Whether this machine has Prometheus and promtool, which comes with it. */
export const hasPrometheus = () =>
  [program, "promtool"].every((name) => spawnSync(name, ["--version"]).error === undefined);

const activeAlerts = z.object({
  data: z.object({
    alerts: z.array(z.object({ labels: z.record(z.string(), z.string()), state: z.enum(["pending", "firing"]) })),
  }),
});
const vector = z.object({
  data: z.object({
    result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) })),
  }),
});

/** A running Prometheus and what it knows. */
export interface Prometheus extends LocalServer {
  /** The names of the alerts that fire, or whose condition holds and that wait for their `for`. */
  activeAlerts: () => Promise<string[]>;
  /** The values of an expression now. */
  query: (expression: string) => Promise<number[]>;
}

/**
 * Starts a Prometheus with its data in a throwaway folder.
 * @param options.config the text of its configuration, if it listens on this port.
 * @param options.prepare is called with the folder of its data before the start.
 */
export async function startPrometheus(options: {
  config: (port: number) => string;
  prepare?: (dataFolder: string) => Promise<void>;
}): Promise<Prometheus> {
  // Prometheus may need longer to stop than a guard of its process waits.
  const guarded = await GuardedFolder.create("serpmill-prometheus-");
  const folder = guarded.path;
  const [configFile, dataFolder] = [join(folder, "prometheus.yml"), join(folder, "data")];
  try {
    await options.prepare?.(dataFolder);
    const server = await startServer({
      name: "Prometheus",
      command: program,
      args: (chosen) => {
        writeFileSync(configFile, options.config(chosen));
        const listen = `--web.listen-address=127.0.0.1:${chosen}`;
        return [`--config.file=${configFile}`, `--storage.tsdb.path=${dataFolder}`, listen];
      },
      readyLine: "Server is ready to receive web requests",
      folder,
      pidFile: join(folder, "prometheus.pid"),
      workFolder: folder,
      cwd: folder,
    });
    const url = `http://127.0.0.1:${server.port}`;
    const stop = async () => {
      await server.stop();
      guarded.remove();
    };
    const get = async (path: string): Promise<unknown> => (await fetch(`${url}/api/v1/${path}`)).json();
    return {
      ...server,
      url,
      stop,
      activeAlerts: async () =>
        activeAlerts.parse(await get("alerts")).data.alerts.map(({ labels }) => labels["alertname"] ?? ""),
      query: async (expression) => {
        const { result } = vector.parse(await get(`query?query=${encodeURIComponent(expression)}`)).data;
        return result.map(({ value: [, value] }) => Number(value));
      },
    };
  } catch (error) {
    guarded.remove();
    throw error;
  }
}
