import type { Page } from "playwright-core";
import type { PageVisitor } from "../harness/clients/page-visitor.ts";

/** A page in a state: who looks at it, where, and what they did before. */
export interface PageState {
  name: string;
  url: string;
  /** The status of the address; 200 without it. */
  status?: number;
  /** Absent for a person who is not signed in. */
  visitor?: PageVisitor;
  /** What the person does on the page before they see the state. */
  act?: (page: Page) => Promise<void>;
  /** The page draws only what is on the screen, so a screenshot shows no more. */
  isScreen?: boolean;
}
