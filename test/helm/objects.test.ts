import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { diff } from "node:util";
import { parse, stringify } from "yaml";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { protocolTimes, shutdownStepMsWith } from "../../shared/protocol-times.ts";
import { page } from "../docs/markdown.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import {
  chart,
  helm,
  type KubernetesObject,
  objectsIn,
  podOf,
  render,
  template,
  type ValuesFile,
  valuesFiles,
  valuesPath,
  withoutHelm,
} from "./helm.ts";
import { typeFaultsOf } from "./type-check.ts";

/** The lines of an object without the labels that all have, one for each field where that fits. */
function reviewable({ metadata, ...object }: KubernetesObject): string[] {
  const own = { ...metadata, labels: undefined };
  const lines = Object.entries({ ...object, metadata: own }).map(([key, value]) => {
    const text = stringify(value, { collectionStyle: "flow", lineWidth: 150, flowCollectionPadding: false });
    return `${key}: ${text}`;
  });
  return ["---", ...lines.join("").trimEnd().split("\n")];
}

/** What is in `lines` and not in `others`, and the other way round, in order. */
const changes = (lines: readonly string[], others: readonly string[]) =>
  diff(lines, others).flatMap(([side, line]) => (side === 0 ? [] : [`${side > 0 ? "+" : "-"}${line}`]));

/** What the chart makes of values: objects that Kubernetes accepts, hardened and connected as docker compose does it. */

describe.skipIf(withoutHelm !== "")(`the chart${withoutHelm}`, () => {
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(readSource("package.json")));
  const rendered = new Map<ValuesFile, string>();
  const objectsOf = (name: ValuesFile) => objectsIn(rendered.get(name) ?? "");
  const ofKind = (name: ValuesFile, kind: string) => objectsOf(name).filter((object) => object.kind === kind);

  beforeAll(async () => {
    for (const name of valuesFiles) rendered.set(name, await template(name));
  });

  test("Helm finds no fault in the chart", async () => {
    for (const name of valuesFiles)
      expect(await helm("lint", "--strict", "--quiet", chart, "--values", valuesPath(name))).toBe("");
  });

  /** The objects to review. The rules and the proxy's configuration are compared with their files, below. */
  function reviewed(values: ValuesFile) {
    const objects = objectsOf(values).filter(({ kind }) => !/^(PrometheusRule|ConfigMap)$/.test(kind));
    const common = {
      "app.kubernetes.io/name": "serpmill",
      "app.kubernetes.io/instance": "serpmill",
      "app.kubernetes.io/managed-by": "Helm",
      "helm.sh/chart": `serpmill-${version}`,
    };
    for (const { metadata } of objects) expect(metadata.labels).toMatchObject(common);
    return objects.map((object) => {
      const component = object.metadata.name.replace("serpmill-", "");
      return {
        title: `${values} ${object.kind} ${component}`,
        kind: object.kind,
        component,
        lines: reviewable(object),
      };
    });
  }

  test("the objects of each values file are those that were reviewed", async () => {
    const all = valuesFiles.flatMap(reviewed);
    // Each as it differs from that of the API or its own above it, whichever is nearer, with the component's name replaced.
    const shown = all.flatMap(({ title, component, kind, lines }, at) => {
      const isLike = (other: (typeof all)[number]) =>
        other.kind === kind && ["api", component].includes(other.component);
      const differences = all
        .slice(0, at)
        .filter(isLike)
        .map((other) => {
          const renamed = other.lines.map((line) =>
            line.replaceAll(new RegExp(`\\b${other.component}\\b`, "g"), component),
          );
          return [`@@ ${title}, unlike ${other.title}`, ...changes(lines, renamed)];
        });
      const [nearest] = differences.toSorted((one, other) => one.length - other.length);
      return nearest ?? [`@@ ${title}`, ...changes(lines, [])];
    });
    const text = `${shown.join("\n")}\n`.replaceAll(version, "VERSION").replace(/@sha256:\w+/g, "");
    await expect(text).toMatchFileSnapshot("golden/objects.diff");
  });

  test.each(valuesFiles)("Kubernetes, KEDA and Prometheus' operator know every field of %s", async (name) => {
    expect(await typeFaultsOf(objectsOf(name))).toEqual([]);
  });

  test("the processes run as the user of their image", () => {
    const user = Number(/^USER (\d+)/m.exec(readSource("Dockerfile"))?.[1]);
    for (const component of ["api", "worker", "migrate"])
      expect(podOf(objectsOf("minimal"), component).securityContext.runAsUser).toBe(user);
  });

  test("each pod gets only the secrets that docker compose gives its container", async () => {
    const compose = z.object({
      services: z.record(z.string(), z.object({ secrets: z.array(z.string()).default([]) })),
    });
    const { services } = compose.parse(parse(readSource("docker-compose.yml"), { merge: true }));
    for (const component of ["api", "worker", "migrate"] as const) {
      const { container, volumes } = podOf(objectsOf("everything"), component);
      const mounted = volumes.flatMap(({ secret }) => (secret?.items ?? []).map(({ key }) => key));
      // The Redis of docker compose has no Sentinels.
      expect(mounted.filter((key) => key !== "SENTINEL_PASSWORD").toSorted()).toEqual(
        services[component]?.secrets.toSorted(),
      );
      const files = container.env.flatMap(({ value }) => /^\/run\/secrets\/serpmill\/(.+)$/.exec(value)?.[1] ?? []);
      expect(files.toSorted()).toEqual(mounted.toSorted());
    }
  });

  test.each([500, protocolTimes.searchDeadlineDefaultMs, 45_500, protocolTimes.searchDeadlineMaxMs])(
    "with a deadline of %d ms, every process has the time that it needs to stop",
    async (deadlineMs) => {
      const objects = await render("minimal", `settings.SEARCH_DEADLINE_MS=${deadlineMs}`);
      const pods = ["api", "worker", "proxy"].map((component) => podOf(objects, component));
      for (const { container, terminationGracePeriodSeconds = 0 } of pods) {
        const left = terminationGracePeriodSeconds - (container.lifecycle?.preStop.sleep.seconds ?? 0);
        expect(left * 1_000).toBeGreaterThanOrEqual(shutdownStepMsWith(deadlineMs) + 5_000);
      }
    },
  );

  const alertRule = z.looseObject({ alert: z.string().optional() });
  const ruleGroups = z.object({ groups: z.array(z.looseObject({ rules: z.array(alertRule) })) });
  const monitored = z.object({ spec: ruleGroups });
  const rulesIn = (objects: readonly KubernetesObject[]) =>
    objects.filter(({ kind }) => kind === "PrometheusRule").map((object) => monitored.parse(object).spec);
  const shippedRules = ["objectives", "alerts"].map((name) =>
    ruleGroups.parse(parse(readSource(`deploy/prometheus/${name}.yml`))),
  );

  const fixed = { APIs: "api.autoscaling.enabled=false", workers: "worker.autoscaling.enabled=false" };

  test("the rules are the shipped ones, whole", async () => {
    expect(rulesIn(await render("everything", fixed.APIs, fixed.workers))).toEqual(shippedRules);
  });

  test.each([
    { of: "APIs", change: fixed.workers },
    { of: "workers", change: fixed.APIs },
  ])("an autoscaler of the $of alone causes no page when it removes a pod", async ({ change }) => {
    const kept = shippedRules.map(({ groups }) => ({
      groups: groups.map((group) => ({ ...group, rules: group.rules.filter(({ alert }) => alert !== "ReplicaGone") })),
    }));
    expect(kept).not.toEqual(shippedRules);
    expect(rulesIn(await render("everything", change))).toEqual(kept);
  });

  test("the proxy is that of docker compose: only the DNS, the name of the APIs and their number differ", () => {
    const config = z.object({ data: z.object({ "haproxy.cfg": z.string() }) });
    const lines = config.parse(ofKind("everything", "ConfigMap")[0]).data["haproxy.cfg"].trimEnd().split("\n");
    const shipped = readSource("deploy/proxy/haproxy.cfg").trimEnd().split("\n");
    expect(lines).toHaveLength(shipped.length);
    const differing = lines.flatMap((line, at) => (line === shipped[at] ? [] : [line.trim()]));
    const apis =
      "server-template api 40 serpmill-api.search.svc.cluster.local:3000 resolvers compose resolve-prefer ipv4 init-addr none";
    expect(differing).toEqual(["parse-resolv-conf", apis, apis]);
  });

  test("who follows the page installs what it says: its values render, and its Secret has what the pods mount", async () => {
    const { text } = page("docs/operating/kubernetes.md");
    // They are indented, as steps of a list.
    const blocks = [...text.matchAll(/^ {3}```\w+\n([\s\S]*?)^ {3}```$/gm)].map(([, block = ""]) => block);
    const textOf = (word: string) => blocks.find((block) => block.includes(word)) ?? "";
    const folder = await GuardedFolder.create("serpmill-values-");
    onTestFinished(() => folder.remove());
    const path = join(folder.path, "values.yaml");
    await writeFile(path, textOf("existingSecret:"));
    const objects = objectsIn(await helm("template", "serpmill", chart, "--namespace=search", `--values=${path}`));
    const [, name] = /create secret generic (\S+)/.exec(textOf("create secret")) ?? [];
    const keys = [...textOf("create secret").matchAll(/--from-literal=(\w+)=/g)].map(([, key]) => key);
    const mounted = (["api", "worker", "migrate"] as const).flatMap((component) =>
      podOf(objects, component).volumes.flatMap(({ secret }) => (secret ? [secret] : [])),
    );
    expect(new Set(mounted.map(({ secretName }) => secretName))).toEqual(new Set([name]));
    expect(new Set(mounted.flatMap(({ items }) => items.map(({ key }) => key)))).toEqual(new Set(keys));
  });

  test.each<[change: string, message: string]>([
    ['image.repository=""', "image.repository: expected the repository of the image that you built"],
    [
      'secrets.existingSecret=""',
      "secrets.existingSecret: expected the name of a Secret in this namespace with DATABASE_URL",
    ],
    ['secrets.existingSecret="Not_A_Name"', "'/secrets/existingSecret': 'Not_A_Name' does not match pattern"],
    ['settings.SERP_PROVIDERS=""', "settings.SERP_PROVIDERS: expected a comma list of search providers"],
    ["settings={}", "settings.SERP_PROVIDERS: expected a comma list of search providers"],
    ["settings.SERP_PROVIDERS=5", "'/settings/SERP_PROVIDERS': got number, want string"],
    ['settings.SERPER_API_KEY="a-secret"', "'/settings': additional properties 'SERPER_API_KEY' not allowed"],
    ['settings.API_OPS_PORT="3000"', "'/settings': additional properties 'API_OPS_PORT' not allowed"],
    ["settings.SERPAPI_AI_OVERVIEW=true", "'/settings/SERPAPI_AI_OVERVIEW': value must be one of 'on', 'off'"],
    ["settings.SEARCH_DEADLINE_MS=120001", "'/settings/SEARCH_DEADLINE_MS': maximum: got 120,001, want 120,000"],
    [
      'settings.COMPAT_HOSTS="tavily=t.example"',
      "settings.COMPAT_HOSTS: expected only doors that settings.COMPAT_DOORS names",
    ],
    [
      'settings.SENTINEL_USERNAME="serpmill"',
      "secrets.sentinelPassword: expected true, because settings.SENTINEL_USERNAME is set",
    ],
    [
      'settings.OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4318"',
      "networkPolicy.collector: expected rules of egress to the collector",
    ],
    ["payments=true", "settings.PUBLIC_URL: expected the address of the API, because payments is true"],
    ['proxy.service.externalTrafficPolicy="Local"', "proxy.service.type: expected NodePort or LoadBalancer"],
    ["worker.replicas=-1", "'/worker/replicas': minimum: got -1, want 0"],
    ["api.autoscaling.minReplicas=11", "api.autoscaling.maxReplicas: expected at least minReplicas"],
    ["worker.autoscaling.enabled=true", "worker.autoscaling.prometheus: expected the address of Prometheus"],
    ["monitoring.serviceMonitor=true", "networkPolicy.monitoring: expected the pods of Prometheus"],
    ["networkPolicy.monitoring=[{}]", "'/networkPolicy/monitoring/0': minProperties: got 0, want 1"],
    ["networkPolicy.outbound=[{}]", "'/networkPolicy/outbound/0': minProperties: got 0, want 1"],
    ["api.port=3000", "'/api': additional properties 'port' not allowed"],
  ])("%s is refused, and the message says what is expected", async (change, message) => {
    await expect(template("minimal", change)).rejects.toThrow(message);
  });

  test("the first step of an upgrade replaces workers and no API, the first of a rollback APIs and no worker", async () => {
    const podsWith = async (...tags: string[]) => {
      const objects = await render("minimal", ...tags);
      return { api: podOf(objects, "api"), worker: podOf(objects, "worker") };
    };
    const before = await podsWith('image.tag="0.1.0"');
    const between = await podsWith('image.tag="0.2.0"', 'api.tag="0.1.0"');
    const after = await podsWith('image.tag="0.2.0"');
    expect(between.api).toEqual(before.api);
    expect(between.worker).toEqual(after.worker);
    expect(after.worker).not.toEqual(before.worker);
  });

  test("a release without APIs and workers, as for a restore, differs in their numbers alone, and the proxy in its servers", async () => {
    const stopped = await template("minimal", "api.replicas=0", "worker.replicas=0");
    const usual = rendered.get("minimal") ?? "";
    const added = changes(stopped.split("\n"), usual.split("\n")).filter((line) => line.startsWith("+"));
    const servers = expect.stringMatching(/^\+ *server-template api 2 /);
    const none = expect.stringMatching(/^\+ *replicas: 0$/);
    expect(added).toEqual([servers, servers, none, expect.stringMatching(/^\+ *checksum/), none]);
  });

  test("a release, its namespace and what the values name may have numbers as names", async () => {
    const numbers = [
      'secrets.existingSecret="1"',
      'image.pullSecrets=["2"]',
      'ca={"existingConfigMap":"3","key":"4"}',
      'priorityClassName="5"',
    ].flatMap((change) => ["--set-json", change]);
    const values = `--values=${valuesPath("minimal")}`;
    const objects = objectsIn(await helm("template", "6", chart, "--namespace=12345", values, ...numbers));
    expect(await typeFaultsOf(objects)).toEqual([]);
  });

  test("a packaged chart has the shared files in it", async () => {
    const folder = await GuardedFolder.create("serpmill-chart-");
    onTestFinished(() => folder.remove());
    await helm("package", chart, "--destination", folder.path);
    const path = join(folder.path, `serpmill-${version}.tgz`);
    const values = `--values=${valuesPath("everything")}`;
    expect(await helm("template", "serpmill", path, "--namespace=search", values)).toBe(rendered.get("everything"));
  });

  test("without any rule for DNS, stores and the internet, pods may connect to none", async () => {
    const closed = await render(
      "minimal",
      "networkPolicy.dns=[]",
      "networkPolicy.data=[]",
      "networkPolicy.outbound=[]",
    );
    const policy = z.object({ spec: z.object({ egress: z.array(z.unknown()) }) });
    const rules = closed
      .filter(({ kind }) => kind === "NetworkPolicy")
      .map((object) => policy.parse(object).spec.egress.length);
    expect(rules.toSorted((a, b) => a - b)).toEqual([0, 0, 0, 1]);
    expect(await typeFaultsOf(closed)).toEqual([]);
  });
});
