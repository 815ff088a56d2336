import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../assertions/eventually.ts";
import { Service } from "./service.ts";
import { environmentFor, SupervisedProcess } from "./supervised-process.ts";

let service: Service;
let worker: SupervisedProcess;
beforeAll(async () => {
  service = await Service.start({ apis: 0, workers: 0 });
  worker = new SupervisedProcess({ kind: "worker", number: 0, environment: environment() });
  await worker.ready();
});
afterAll(async () => {
  await worker.close();
  await service.stop();
});

const environment = () =>
  environmentFor({ databaseUrl: service.processDatabaseUrl, redisUrl: service.redisServer.url });

test("a process that is killed is started again while its supervisor restarts it", async () => {
  const before = worker.runs.length;
  worker.restartsOnExit = true;
  worker.kill();
  await eventually(async () => worker.runs.length === before + 1);
  worker.restartsOnExit = false;
  await worker.ready();
  expect(worker.killedAtMs.length).toBeGreaterThan(0);
  expect(worker.defects()).toEqual([]);
});

test("a frozen process does nothing until it is resumed", async () => {
  worker.freeze();
  const answered = fetch(`${worker.opsUrl ?? ""}/readyz`);
  const isAnswered = await Promise.race([answered.then(() => true), new Promise((r) => setTimeout(r, 200, false))]);
  expect(isAnswered).toBe(false);
  worker.resume();
  expect((await answered).ok).toBe(true);
});

test("a process rolls over to the next one, which is ready before the old one is asked to stop", async () => {
  const old = worker.run;
  let wasOldAlive = false;
  const exitCode = await worker.rollOver(async () => {
    wasOldAlive = old?.hasEnded === false && worker.run !== old;
  });
  expect({ exitCode, wasOldAlive, hasEnded: old?.hasEnded }).toEqual({
    exitCode: 0,
    wasOldAlive: true,
    hasEnded: true,
  });
  expect(worker.defects()).toEqual([]);
});

test("a process that ends by itself is a defect, and so is its output to stderr", async () => {
  const broken = new SupervisedProcess({ kind: "worker", number: 1, environment: { ...environment(), REDIS_URL: "" } });
  broken.start();
  if (broken.run) await once(broken.run.child, "close");
  expect(broken.isRunning).toBe(false);
  expect(broken.defects().join("\n")).toMatch(/worker 1 ended by itself with exit code 1/);
  expect(broken.opsUrl).toBeUndefined();
  await broken.close();
});
