import { startGuardedProcess } from "../../local/guarded-process.ts";

/** Keeps this many busy loops running, each a process of its own, while `use` runs. */
export async function withLoad<T>(loops: number, use: () => Promise<T>): Promise<T> {
  const started = await Promise.all(
    Array.from({ length: loops }, () =>
      startGuardedProcess(process.execPath, ["--eval", "for (;;);"], { stdio: "ignore" }),
    ),
  );
  try {
    return await use();
  } finally {
    await Promise.all(started.map((loop) => loop.stop()));
  }
}
