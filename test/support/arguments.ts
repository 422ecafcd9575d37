/** The arguments of the long forms of tests: `npm run chaos`, `fuzz`, `ha`, `soak`. */
import { parseArgs, type ParseArgsConfig } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;

/**
 * Reads the arguments of this process. With `--help`, or where there are others, it prints `usage`
 * and ends the process.
 */
export function readArguments<T extends Options>(usage: string, options: T) {
  if (process.argv.includes("--help")) end(process.stdout, usage, 0);
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return end(process.stderr, `${error instanceof Error ? error.message : ""}\n\n${usage}`, 1);
  }
}

function end(output: NodeJS.WriteStream, text: string, code: number): never {
  output.write(text);
  process.exit(code);
}
