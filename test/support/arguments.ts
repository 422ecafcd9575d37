/** The arguments of the long forms of tests: `npm run chaos`, `fuzz`, `ha`, `soak`. */
import { parseArgs, type ParseArgsConfig } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;

/**
 * Reads the arguments of this process. With `--help`, or where there are others, it prints `usage` and ends the process.
 */
export function readArguments<T extends Options>(usage: string, options: T) {
  if (process.argv.includes("--help")) {
    process.stdout.write(usage);
    process.exit();
  }
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    process.exit(1);
  }
}
