import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification, type TestUserConfig } from "vitest/node";

/**
 * The files that take longest, the longest first: they start processes, databases or browsers and
 * wait for them.
 */
const slow = [
  /^test\/behaviour\/sloppy-vendors\//,
  /^test\/behaviour\/lifecycle\/(?:workers|stop|journal|no-builder|start)\.test\.ts$/,
  /^test\/unit\/billing\/(?:ledger\/ledger-model|audit\/auditor)\.test\.ts$/,
  /^test\/behaviour\/console\//,
  /^test\/unit\/db\/embedded\//,
  /^test\/docs\/readme\.test\.ts$/,
  /^test\/unit\/(?:task\/crash|billing\/retention)\.test\.ts$/,
  /^test\/behaviour\/native\/hostile\.test\.ts$/,
];

/**
 * A file that measures the memory of its process, so no other file runs at the same time. Garbage
 * of other files would make its collections several times as long.
 */
const alone = ["test/behaviour/media/v1-audio/upload-memory.test.ts"];

/** The tests of the rigs: only `npm run nightly` runs them. */
const nightly = ["test/nightly/**/*.test.ts"];

/**
 * Starts the slow files first. A slow file that starts last would run while all other workers are
 * idle.
 */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const name = moduleId.slice(project.config.root.length + 1);
      const index = slow.findIndex((pattern) => pattern.test(name));
      return index === -1 ? slow.length : index;
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}

/**
 * Node.js itself loads the program and its tests, as in production. Vite would rewrite every file,
 * and each use of an import would become a lookup: four short files took 13 s of CPU with Vite and
 * 6 s without. No test mocks modules, so no loader hook is needed.
 */
const experimental = { viteModuleRunner: false, nodeLoader: false };

/** The settings of every test. */
const usual = {
  setupFiles: ["test/support/leaks.ts", "test/support/patience.ts"],
  // The tests start real servers, also on busy machines of two cores.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // As in test/support/patience.ts.
  expect: { poll: { timeout: 30_000 } },
  restoreMocks: true,
  // No module of src has state, so the test files of a worker share one process. With a new process
  // for each file, importing the program took longer than testing it.
  isolate: false,
  // Sizes of the heap in MiB. By default V8 starts with 1 MiB for new objects, and collects them so
  // often that workers need 7 % more CPU. The space for old objects also starts small, and each
  // time it is full, V8 searches all of it: another 7 %.
  execArgv: [
    "--min-semi-space-size=64",
    "--max-semi-space-size=64",
    "--initial-old-space-size=512",
    // V8's optimizing compiler needs more CPU than it saves: 3 %.
    "--no-turbofan",
    // As in src/app/v8-flags.ts: by default, 64 MiB of buffers start a full collection, even if the
    // heap is almost empty. These flags save 5 to 11 %.
    "--external-memory-accounted-in-global-limit",
    "--no-concurrent-array-buffer-sweeping",
    ...(Number.parseInt(process.versions.v8, 10) < 14
      ? []
      : ["--external-memory-max-growing-factor=3", "--no-scavenger-updates-allocation-limit"]),
  ],
  experimental,
} satisfies TestUserConfig;

// oxlint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    // Here it runs once. If the projects inherited it, it would run once for each.
    globalSetup: ["test/support/global-setup.ts"],
    sequence: { sequencer: SlowFirst },
    experimental,
    projects: [
      {
        test: {
          ...usual,
          name: "alone",
          include: alone,
          maxWorkers: 1,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...usual,
          name: "tests",
          include: ["test/**/*.test.ts"],
          exclude: [...alone, ...nightly],
          // Two more workers than cores, because most slow files wait for processes, timers and the
          // database. With one more than cores, an eighth of the machine was idle in the second
          // half. None more with `DATABASE_URL`: that server may allow 100 connections only.
          maxWorkers: availableParallelism() + (process.env["DATABASE_URL"] ? 0 : 2),
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...usual,
          name: "nightly",
          include: nightly,
          // Each file uses the whole machine, or measures the memory of its process.
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
