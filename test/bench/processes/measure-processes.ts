import { existsSync, readFileSync } from "node:fs";

// The kernel reports ticks of 10 ms to every program.
const usPerTick = 10_000;
const bytesPerKb = 1_024;

/** Whether this system reports the CPU and memory of other processes, as Linux does. */
export const canMeasureProcesses = existsSync("/proc/self/stat");

/** The CPU that processes and their children, including ended ones, have used so far, in µs. */
export function cpuUsOf(pids: readonly number[]): number {
  return sum(pids.flatMap((pid) => [endedChildrenTicks(pid), ...treeOf(pid).map(ownTicks)])) * usPerTick;
}

/**
 * The memory of processes with their children, in bytes. With children, shared pages such as Postgres' buffers count once;
 * otherwise it is the resident memory.
 */
export function memoryBytesOf(pids: readonly number[]): number {
  return sum(
    pids.map((pid) => {
      const tree = treeOf(pid);
      const kb =
        tree.length > 1
          ? tree.map((one) => kbIn(`/proc/${one}/smaps_rollup`, /^Pss: +(\d+) kB/m))
          : tree.map((one) => kbIn(`/proc/${one}/status`, /^VmRSS:\s+(\d+) kB/m));
      return sum(kb) * bytesPerKb;
    }),
  );
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function treeOf(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(treeOf)];
}

/** Fields 14 to 17 of /proc/PID/stat: user and system time, of the process itself and of its ended children. */
function timesOf(pid: number): number[] {
  // The name of the program comes before them, in parentheses, and may contain blanks.
  const fields = read(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ") ?? [];
  return fields.slice(11, 15).map(Number);
}

const ownTicks = (pid: number) => sum(timesOf(pid).slice(0, 2));
const endedChildrenTicks = (pid: number) => sum(timesOf(pid).slice(2));

const kbIn = (file: string, pattern: RegExp) => Number(pattern.exec(read(file))?.[1] ?? 0);

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // The process has ended.
  }
}
