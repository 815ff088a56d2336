import { afterAll, expect } from "vitest";
import { freePort } from "../../../local/ports.ts";
import { StripeStub } from "../stubs/stripe-stub.ts";
import { Service } from "./service.ts";

/**
 * A service whose payments go to a Stripe stub, for the tests of one file: after them its ledger is verified, and both
 * are stopped. `settings` come on top of the stub's; with `ownPort`, `PUBLIC_URL` is the address of the only API.
 */
export async function startStripeService({
  settings = {},
  ownPort = false,
  ...processes
}: {
  apis?: number;
  workers?: number;
  settings?: Record<string, string>;
  ownPort?: boolean;
} = {}) {
  const port = ownPort ? String(await freePort()) : "0";
  const url = `http://127.0.0.1:${port}`;
  const stub = await StripeStub.start();
  const ownUrl = ownPort ? { API_PORT: port, PUBLIC_URL: url } : {};
  const environment = { ...stub.environment, ...ownUrl, ...settings };
  const service = await Service.start({ ...processes, environment });
  afterAll(async () => {
    expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
    await service.stop();
    await stub.close();
  });
  return { stub, service, url };
}
