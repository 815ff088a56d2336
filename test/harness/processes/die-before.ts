/**
 * Loaded into a process before its own code (`node --import`): kills it, as the kernel would, at the moment at which it is about
 * to send the statement or command to Postgres or Redis that contains the parameter `before` of the import.
 */
import { Redis } from "ioredis";
import pg from "pg";

const end = new URL(import.meta.url).searchParams.get("before") ?? "nothing";

function dieBefore(sent: unknown): void {
  if (!JSON.stringify(sent).includes(end)) return;
  process.kill(process.pid, "SIGKILL");
  for (;;); // The signal may need another thread's turn to arrive.
}

// The pool uses one of the many overloads of `query`.
const client = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
const { query } = client;
client.query = function (...args) {
  dieBefore(args[0]);
  return query.apply(this, args);
};

// oxlint-disable-next-line typescript/unbound-method -- called with the connection that it was called on
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (command, stream) {
  dieBefore([command.name, ...command.args]);
  return sendCommand.call(this, command, stream);
};
