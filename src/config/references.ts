/**
 * Replaces references to secrets: `${env:NAME}` by the variable, `${file:/path}` by the content of
 * the file, `${credential:NAME}` by a credential of systemd, `${exec:command}` by the output of the
 * command, and `${secret:NAME}` by the secret of this name in the database.
 */
import { readFileSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import type { Parsed } from "./address.ts";
import type { CommandResults } from "./commands.ts";

/** The environment and the files that references are resolved from. */
export interface ReferenceSource {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The secrets of the database by name; undefined before it is open. */
  readonly secrets?: ReadonlyMap<string, string> | undefined;
  /** The output of commands by their text; undefined where they are not run. */
  readonly commands?: CommandResults | undefined;
  /**
   * Whether the document is stored in the database. Operators who may apply it need not have access
   * to the machine: it runs no commands and reads files of secrets only.
   */
  readonly isStored?: boolean | undefined;
  /** Relative file paths count from here: the configuration file's folder. */
  readonly folder: string;
  /**
   * The value of a reference that cannot be resolved; undefined means such a reference is an error.
   */
  readonly placeholder: string | undefined;
}

/** The largest file that a secret is read from. */
const secretFileBytesMax = 64 * 1024;

const reference = /\$\{([^}]*)\}?/g;
const whole = /^\$\{(env|file|secret|credential|exec):([^}]*)\}$/;
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The same as a pattern of JSON Schema. */
export const secretPattern =
  "^\\$\\{(env:[A-Za-z_][A-Za-z0-9_]*|(file|secret|credential|exec):[^}]+)\\}$";

/** Syntax of a secret. */
const secretForm = "${env:NAME}, ${file:/path}, ${secret:NAME} or ${exec:command}";

/**
 * Resolves a secret. It must be a single reference, so that the file contains no secret. The
 * problem never repeats a literal secret.
 */
export function resolveSecret(text: string, source: ReferenceSource): Parsed<string> {
  const match = whole.exec(text);
  if (match === null) {
    return { problem: `keep secrets out of this file: write ${secretForm}` };
  }
  const resolved = resolveOne(match[1] ?? "", match[2] ?? "", source);
  if ("problem" in resolved) return resolved;
  const secret = resolved.value.trim();
  // It goes into a header: any other character would break each request, or split it in two.
  if (/^[\x21-\x7e]+$/.test(secret)) return { value: secret };
  return {
    problem: `the value of ${match[0]} is not a credential: it contains spaces, line breaks or other characters that cannot be sent`,
  };
}

/** Resolves every `${env:NAME}` inside a text that is not a secret. */
export function resolveText(text: string, source: ReferenceSource): Parsed<string> {
  let problem: string | undefined;
  const resolved = text.replace(reference, (_all, inner: string) => {
    const [kind, ...rest] = inner.split(":");
    const one: Parsed<string> =
      kind === "env"
        ? resolveOne("env", rest.join(":"), source)
        : { problem: 'only "${env:NAME}" can be used here' };
    if ("value" in one) return one.value;
    problem ??= one.problem;
    return "";
  });
  return problem === undefined ? { value: resolved } : { problem };
}

function resolveOne(kind: string, name: string, source: ReferenceSource): Parsed<string> {
  if (kind === "env" && !variableName.test(name)) {
    return { problem: 'write "${env:NAME}" with the name of an environment variable' };
  }
  const found = readReference(kind, name, source);
  if ("value" in found || source.placeholder === undefined) return found;
  return { value: source.placeholder };
}

function readReference(kind: string, name: string, source: ReferenceSource): Parsed<string> {
  if (kind === "env") return fromEnv(name, source);
  if (kind === "secret") return fromSecrets(name, source);
  if (kind === "exec") return fromCommands(name, source);
  return kind === "file" ? fromFile(name, source) : fromCredentials(name, source);
}

function fromCommands(text: string, { commands, isStored }: ReferenceSource): Parsed<string> {
  if (isStored === true) {
    return {
      problem:
        "a configuration that is applied runs no commands: store the secret by `uas config secret set`",
    };
  }
  return commands?.get(text) ?? { value: notRead };
}

/** @see https://systemd.io/CREDENTIALS/ */
function fromCredentials(name: string, source: ReferenceSource): Parsed<string> {
  const folder = source.env["CREDENTIALS_DIRECTORY"];
  if (!/^[A-Za-z0-9._-]+$/.test(name) || name.startsWith(".")) {
    return { problem: 'write "${credential:NAME}" with a name of LoadCredential= of the unit' };
  }
  if (folder === undefined) {
    return {
      problem: "CREDENTIALS_DIRECTORY is not set: systemd sets it for a unit with LoadCredential=",
    };
  }
  return fromFile(join(folder, name), source);
}

/** The value of a secret before the database is open: it is read again then. */
export const notRead = "not-read-yet";

function fromSecrets(name: string, { secrets }: ReferenceSource): Parsed<string> {
  if (secrets === undefined) return { value: notRead };
  const value = secrets.get(name);
  if (value !== undefined) return { value };
  return { problem: `no secret ${name} is stored: set it by \`uas config secret set ${name}\`` };
}

/** Secrets of the gateway itself: as a vendor's key, they would be sent to the vendor. */
const ownSecrets: ReadonlySet<string> = new Set([
  "UAS_MASTER_KEY",
  "UAS_OPERATOR_TOKEN",
  "DATABASE_URL",
  "PGPASSWORD",
]);

function fromEnv(name: string, source: ReferenceSource): Parsed<string> {
  if (ownSecrets.has(name)) {
    return { problem: `${name} is a secret of the gateway itself: name another variable` };
  }
  const text = source.env[name];
  if (text === undefined) return { problem: `environment variable ${name} is not set` };
  return text.trim() === ""
    ? { problem: `environment variable ${name} is empty` }
    : { value: text };
}

/** The folders from which a stored document may read files. */
function secretFolders({ env }: ReferenceSource): readonly string[] {
  const named = [env["CREDENTIALS_DIRECTORY"], env["UAS_SECRETS_DIR"]];
  return ["/run/secrets", ...named.filter((folder) => folder !== undefined)];
}

function fromFile(path: string, source: ReferenceSource): Parsed<string> {
  if (path === "") return { problem: 'write "${file:/path}" with the path of a file' };
  const file = resolve(source.folder, path);
  const folders = secretFolders(source);
  if (source.isStored === true && !folders.some((each) => file.startsWith(resolve(each) + sep))) {
    return {
      problem: `a configuration that is applied reads files below ${folders.join(", ")} only (UAS_SECRETS_DIR adds a folder): store the secret by \`uas config secret set\``,
    };
  }
  try {
    // A pipe or a device would never end.
    const facts = statSync(file);
    if (!facts.isFile()) return { problem: `${file} is not a file` };
    if (facts.size > secretFileBytesMax) return { problem: `${file} is too large for a secret` };
    const text = readFileSync(file, "utf8");
    return text.trim() === "" ? { problem: `file ${file} is empty` } : { value: text };
  } catch (error) {
    return { problem: `file ${file} ${readProblem(error)}` };
  }
}

/** The files that a document names for its secrets, to watch them. */
export function secretFiles(
  document: string,
  { env, folder }: Pick<ReferenceSource, "env" | "folder">,
): readonly string[] {
  const credentials = env["CREDENTIALS_DIRECTORY"];
  const found = [...document.matchAll(/\$\{(file|credential):([^}]+)\}/g)].flatMap(
    ([, kind, name = ""]) => {
      if (kind === "file") return [resolve(folder, name)];
      return credentials === undefined ? [] : [join(credentials, name)];
    },
  );
  return [...new Set(found)];
}

/** Why a file cannot be read, without the wording of Node.js. Completes "file /path …". */
export function readProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  if (code === "EACCES" || code === "EPERM") return "may not be read by this user";
  if (code === "EISDIR") return "is a folder";
  return `cannot be read (${code || "unknown reason"})`;
}
