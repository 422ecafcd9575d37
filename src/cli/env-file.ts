/** The file of variables that a service reads, for commands. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { CliError } from "./failure.ts";

/**
 * Reads variables, one `NAME='value'` a line, as systemd's `EnvironmentFile` does.
 *
 * @throws CliError if the file cannot be read
 */
export function readEnvFile(cwd: string, file: string): NodeJS.Dict<string> {
  const path = resolve(cwd, file);
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const reason = reasons[code] ?? "cannot be read";
    throw new CliError(`${path} ${reason}: name the file of the service's variables`, { cause });
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "cannot be read by this user",
};
