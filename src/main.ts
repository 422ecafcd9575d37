/** The entry point of the `uas` command. */
import { runCli } from "./cli/program.ts";
import { version } from "./core/package.ts";

/**
 * Runs one command and sets the exit code of the process. Never rejects.
 *
 * @param argv the arguments of the process, including the program's path
 */
export async function main(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", ignoreClosedPipe);
  process.exitCode = await runCli(argv, {
    env: process.env,
    cwd: process.cwd(),
    version,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    ...(process.stdin.isTTY && process.stderr.isTTY && { ask }),
    servedKinds: async () => (await import("./provider/index.ts")).servedKinds,
    // Each loads its own part of the program only: a command line needs a third less of it than a
    // gateway.
    app: async () => ({
      openBackend: async (options) => (await import("./app/backend.ts")).openBackend(options),
      serve: async (options) => (await import("./app/serve.ts")).serve(options),
      rotateMasterKey: async (options) =>
        (await import("./app/master-key.ts")).rotateMasterKey(options),
      inspectDatabase: async (settings) =>
        (await import("./app/database-check.ts")).inspectDatabase(settings),
      probeVendors: async (config) => (await import("./app/vendor-probe.ts")).probeVendors(config),
    }),
  });
}

/** Asks on standard error: standard output may be a file. */
async function ask(question: string): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
}

/** Ignores EPIPE: `uas … | head` closes the pipe early, which is no failure. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}
