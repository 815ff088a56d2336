import { z } from "zod";
import { newId } from "../../shared/ids.ts";
import type { McpRequest } from "./mcp-request.ts";

/**
 * Since the revision 2026-07-28 who cancels closes the connection. Before, the client sends a message of its own that names
 * the request by a number which the client counts by itself: two clients of one organization count alike. So each of them
 * is given a name at its first message, and tells it with all others. Nothing is stored under that name; a message that
 * reaches another process than the one that it means changes nothing, as the protocol allows.
 */

const nameHeader = "mcp-session-id";

const requestId = z.union([z.string(), z.number()]);
const request = z.object({ method: z.string(), id: requestId });
const cancelled = z.object({ method: z.literal("notifications/cancelled"), params: z.object({ requestId }) });

/** The calls that this process has under way and that a message can cancel. */
export class Cancellation {
  readonly #underWay = new Map<string, McpRequest>();

  /** Takes note of a visit and of its message, as JSON; and cancels what it says should be. */
  see(visit: McpRequest, message: unknown): void {
    const cancel = cancelled.safeParse(message);
    if (cancel.success) this.#underWay.get(nameOf(visit, cancel.data.params.requestId))?.cancel();
    const call = request.safeParse(message);
    if (!call.success) return;
    if (call.data.method === "initialize") visit.response.setHeader(nameHeader, newId("mcp"));
    if (call.data.method === "tools/call" && visit.request.headers[nameHeader] !== undefined) {
      this.#keep(nameOf(visit, call.data.id), visit);
    }
  }

  #keep(name: string, visit: McpRequest): void {
    this.#underWay.set(name, visit);
    visit.response.once("close", () => {
      if (this.#underWay.get(name) === visit) this.#underWay.delete(name);
    });
  }
}

const nameOf = ({ caller, request: { headers } }: McpRequest, id: string | number) =>
  JSON.stringify([caller.organizationId, headers[nameHeader], id]);
