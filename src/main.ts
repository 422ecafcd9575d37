/** The entry point of the `uas` command. */
import packageFacts from "../package.json" with { type: "json" };
import { runCli } from "./cli/program.ts";

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
    version: packageFacts.version,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    servedKinds: async () => (await import("./vendor/index.ts")).servedKinds,
    app: async () => ({ ...(await import("./app.ts")), ...(await import("./app/serve.ts")) }),
  });
}

/** Ignores EPIPE: `uas … | head` closes the pipe early, which is no failure. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}
