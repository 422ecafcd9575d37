import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

// oxlint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/leaks.ts", "test/support/patience.ts"],
    // The tests start real servers, also on busy machines of two cores.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    restoreMocks: true,
    // Nothing in src keeps state in its modules, so the files of a worker share one process: with a fresh one
    // for each file, importing the program took longer than testing it.
    isolate: false,
    // Of two cores one would stay idle: by default one is left to vitest itself, which does little.
    maxWorkers: Math.max(2, availableParallelism() - 1),
  },
});
