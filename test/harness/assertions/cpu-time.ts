/** The milliseconds for which a processor did this. It is the same on a busy machine, where the action takes longer. */
export function cpuMsOf(action: () => void): number {
  const before = process.threadCpuUsage();
  action();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
