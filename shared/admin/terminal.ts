/** What the operator's commands read and write: a process has one, and a test has its own. */
export interface Terminal {
  /** The settings; undefined for those of the process. */
  environment: NodeJS.ProcessEnv | undefined;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
  /** Asks the person at the terminal; absent if there is none. */
  ask?: ((question: string) => Promise<string>) | undefined;
  /** 0 unless a command was refused, failed, or found something wrong. */
  exitCode: number;
}
