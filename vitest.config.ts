import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/servers/servers.ts"],
    // Node strips the types itself, as in production: what fails there fails here.
    experimental: { viteModuleRunner: false },
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 120_000,
    reporters: [process.stdout.isTTY ? "default" : "dot"],
  },
});
