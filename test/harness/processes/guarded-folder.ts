import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

// $1 folder. `read` fails when our end of the pipe is gone, however we ended. Servers that still write into the folder
// are stopped by guards of their own within 5 s, so removing it may take a few attempts.
const guardScript = `
read -r dismissed && exit
for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
  umount -l "$1" 2>/dev/null
  rm -rf "$1" 2>/dev/null && [ ! -e "$1" ] && exit
  sleep 1
done`;

/**
 * A temporary folder that is removed by `remove()`, or by its guard once this process has ended in any way, `kill -9`
 * included. A file system that is mounted there is unmounted first.
 */
export class GuardedFolder {
  readonly path: string;
  readonly #guard: ChildProcess;

  private constructor(path: string, guard: ChildProcess) {
    this.path = path;
    this.#guard = guard;
  }

  static async create(prefix: string): Promise<GuardedFolder> {
    const path = mkdtempSync(join(tmpdir(), prefix));
    const guard = spawn("/bin/sh", ["-c", guardScript, "serpmill-folder-guard", path], {
      detached: true,
      cwd: "/",
      stdio: ["pipe", "ignore", "ignore"],
    });
    await once(guard, "spawn");
    guard.unref();
    guard.stdin.on("error", () => undefined); // The guard may end first when the whole machine stops.
    if (guard.stdin instanceof Socket) guard.stdin.unref();
    return new GuardedFolder(path, guard);
  }

  /** Mounts a file system of this size in memory. @returns false where that is not allowed: it takes root. */
  mount(mebibytes: number): boolean {
    const options = `size=${mebibytes}m,mode=755`;
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", this.path], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  }

  /** Removes the folder. @param isMounted as `mount()` returned it. */
  remove(isMounted = false): void {
    if (isMounted) execFileSync("umount", ["--lazy", this.path]);
    rmSync(this.path, { recursive: true, force: true });
    this.#guard.stdin?.end("dismissed\n");
  }
}
