/** What the operator's commands read and write: a process has one, and a test has its own. */
export interface Terminal {
  /** The settings; undefined for those of the process. */
  environment: NodeJS.ProcessEnv | undefined;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
  /** How many characters a line of stdout has; absent if stdout is a pipe or a file. */
  columns?: number | undefined;
  /** Asks the person at the terminal; absent if there is none. */
  ask?: ((question: string) => Promise<string>) | undefined;
  /** Reads stdin up to its first line break, or its end. */
  readLine: () => Promise<string>;
  /** See exit-codes.ts. */
  exitCode: number;
}
