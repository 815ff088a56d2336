import type { Provider } from "../../../worker/providers/provider.ts";
import { openSandbox } from "../../../worker/providers/sandbox/sandbox.ts";
import { page } from "../providers/policies/fixtures.ts";

/** A provider with one slot, whose calls end when the test says so. */
export function openOneSlot() {
  const calls: { keyword: string; end: () => void }[] = [];
  const provider: Provider = {
    ...openSandbox(),
    concurrentCallsMax: 1,
    request: ({ keyword }) => ({ method: "POST", url: "", headers: {}, body: keyword }),
    read: () => page(),
    transport: ({ body }) =>
      new Promise((resolve) => {
        calls.push({ keyword: body, end: () => resolve({ status: 200, headers: {}, body: "" }) });
      }),
  };
  return { provider, calls };
}
