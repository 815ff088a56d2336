/** The same servers as in local, in containers. */
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from "testcontainers";
import type { LocalServer } from "../../../local/local-server.ts";

const postgresImage = "postgres:18";
const redisImage = "valkey/valkey:8";
const password = "serpmill"; // For a server that runs only during the tests and listens only on this machine.
const stopTimeoutMs = 5_000;

// The tests stop what they start; testcontainers' reaper would need one more image.
process.env.TESTCONTAINERS_RYUK_DISABLED ??= "true";

/** @throws when Docker does not answer. */
export async function containedPostgres(): Promise<LocalServer> {
  const container = await new GenericContainer(postgresImage)
    .withEnvironment({
      POSTGRES_DB: "serpmill",
      POSTGRES_PASSWORD: password,
      POSTGRES_INITDB_ARGS: "--encoding=UTF8 --locale=C --no-sync",
    })
    .withCommand(["postgres", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200"])
    .withExposedPorts(5432)
    // Twice: the image starts it once to initialise it.
    .withWaitStrategy(Wait.forLogMessage("database system is ready to accept connections", 2))
    .start();
  return present(container, 5432, (address) => `postgres://postgres:${password}@${address}/serpmill`);
}

/** @throws when Docker does not answer. */
export async function containedRedis(): Promise<LocalServer> {
  const container = await new GenericContainer(redisImage)
    .withCommand(["valkey-server", "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"])
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"))
    .start();
  return present(container, 6379, (address) => `redis://${address}`);
}

async function present(
  container: StartedTestContainer,
  innerPort: number,
  urlOf: (address: string) => string,
): Promise<LocalServer> {
  const { container: docker } = await getContainerRuntimeClient();
  const inner = docker.getById(container.getId());
  const { State } = await inner.inspect();
  const port = container.getMappedPort(innerPort);
  return {
    url: urlOf(`${container.getHost()}:${port}`),
    port,
    pid: State.Pid,
    folder: "", // Inside the container.
    exited: inner.wait().then(({ StatusCode }: { StatusCode: number }) => `exit code ${StatusCode}`),
    kill: (signal) => void inner.kill({ signal }).catch(() => {}), // The container may have been removed already.
    stop: async () => void (await container.stop({ timeout: stopTimeoutMs })),
  };
}
