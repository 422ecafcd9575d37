import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification, type TestUserConfig } from "vitest/node";

/** The files that take longest, the longest first: they start processes, databases or browsers and wait for them. */
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

/** Looks at the memory of its own process, so no other file runs beside it: collecting their garbage takes several times as
 * long. */
const alone = ["test/behaviour/media/v1-audio/upload-memory.test.ts"];

/** The rigs: chaos, failover, malformed requests, soak, bench. `npm run nightly` runs them, `npm test` does not. */
const nightly = ["test/nightly/**/*.test.ts"];

/** Begins with the slow files: one that came last would run alone, while the other workers have nothing left. */
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
 * Node.js loads the program and its tests itself, as in production. Vite would rewrite every file for that, and make a lookup
 * of every use of an import: four short files took 13 s of CPU with it, and 6 s without. Nothing mocks modules, so no loader
 * hook is needed.
 */
const experimental = { viteModuleRunner: false, nodeLoader: false };

/** What holds for every test. */
const usual = {
  setupFiles: ["test/support/leaks.ts", "test/support/patience.ts"],
  // The tests start real servers, also on busy machines of two cores.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // As in test/support/patience.ts.
  expect: { poll: { timeout: 30_000 } },
  restoreMocks: true,
  // Nothing in src keeps state in its modules, so the files of a worker share one process: with a fresh one
  // for each file, importing the program took longer than testing it.
  isolate: false,
  // Room for objects, in MiB. V8 begins with 1 for new ones, and collects garbage so often that workers take 7 % more CPU.
  // The room for those that live on begins small too, and is searched whole at each limit: 7 % again.
  execArgv: [
    "--min-semi-space-size=64",
    "--max-semi-space-size=64",
    "--initial-old-space-size=512",
    // V8's last compiler takes more CPU than it saves: 3 %.
    "--no-turbofan",
    // As in src/app/v8-flags.ts: 64 MiB of buffers would start a full collection, whatever the heap has room for. 5 to 11 %.
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
    // Once for all projects: one that inherited it would do it once more.
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
          // Two more than there are cores: most of the slow files wait for processes, timers and the database. With one more, an
          // eighth of the machine is idle in the second half. A server of one's own may let in 100 connections only.
          maxWorkers: availableParallelism() + (process.env["DATABASE_URL"] ? 0 : 2),
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...usual,
          name: "nightly",
          include: nightly,
          // They load the machine with as much as it can do, or look at the memory of a process.
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
