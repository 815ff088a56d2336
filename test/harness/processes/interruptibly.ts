const interruptedExitCode = 130;

/**
 * Runs a command that closes what it has open at the first Ctrl-C. With the second this process ends, and guards close the
 * rest.
 */
export async function interruptibly(use: (interrupted: AbortSignal) => Promise<void>): Promise<void> {
  const interruption = new AbortController();
  const stop = () => {
    interruption.abort(new Error("Interrupted."));
    process.exitCode = interruptedExitCode;
  };
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.once(signal, stop);
  try {
    await use(interruption.signal);
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}
