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

/** A provider that answers at once, each page with an overview that only a second call fetches. */
export function announcingOverviews(): Provider {
  const empty = { status: 200, url: "", headers: {}, body: "" };
  const overview = { request: () => empty, read: () => page() };
  const read = () => page({ overviewToken: "token" });
  return { ...openSandbox(), request: () => empty, transport: async () => empty, overview, read };
}
