/** What each agent does: it lists the tools, searches for each keyword, and reads its credit. */
export interface AgentTask {
  url: string;
  token: string;
  keywords: string[];
}

export interface Report {
  tools: string[];
  /** What its client made of each result. */
  answers: unknown[];
}

/** An agent that is built with one of the clients. */
export type Agent = (task: AgentTask) => Promise<Report>;
