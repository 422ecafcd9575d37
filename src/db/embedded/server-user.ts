/** Decides as which user PostgreSQL runs: it refuses to run as root. */
import { type SpawnOptions, spawnSync } from "node:child_process";
import { chmodSync, chownSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** The way to start a program so that PostgreSQL accepts its user. */
export interface RunAs {
  /** The command and the arguments before the program. Empty if the program is called directly. */
  readonly prefix: readonly string[];
  /** The user and group to change to; empty: stay. */
  readonly ids: Pick<SpawnOptions, "uid" | "gid">;
}

interface Ids {
  readonly uid: number;
  readonly gid: number;
}

const asWeAre: RunAs = { prefix: [], ids: {} };

/** In a user namespace root stays the owner of its files, and PostgreSQL sees an ordinary user. */
const inNamespace: RunAs = {
  prefix: ["unshare", "--user", "--map-user=65534", "--map-group=65534"],
  ids: {},
};

/** Existing users that root may hand the data to, best first. */
const unprivilegedUsers = ["postgres", "nobody"];

/** The command line of a program under a {@link RunAs}. */
export function commandLine(
  runAs: RunAs,
  program: string,
  args: readonly string[],
): [string, string[]] {
  const [command = program, ...rest] = [...runAs.prefix, program, ...args];
  return [command, rest];
}

/**
 * Decides how to run PostgreSQL over a folder.
 *
 * @param program any of its programs, for a trial run.
 * @param folder the database's folder; need not exist.
 * @throws if this process runs as root and no method works.
 */
export function chooseRunAs(program: string, folder: string): RunAs {
  if (process.getuid?.() !== 0) return asWeAre;
  const owner = statSync(folder, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { prefix: [], ids: { uid: owner.uid, gid: owner.gid } };
  if (works(inNamespace, program)) return inNamespace;
  for (const name of unprivilegedUsers) {
    const ids = findUser(name);
    if (!ids || !canPass(ids, dirname(dirname(folder)))) continue;
    if (works({ prefix: [], ids }, program)) return { prefix: [], ids };
  }
  throw new Error(
    "PostgreSQL does not run as root, and this system allows no other user: user namespaces are off (`unshare --user` fails), and the users `postgres` and `nobody` cannot run it (are the project and the data folder under a folder that only root may enter, such as /root?). Start the gateway as an ordinary user, move the project to where other users may read it, or set DATABASE_URL to a PostgreSQL of version 15 or later.",
  );
}

/**
 * Gives a new folder to the user that PostgreSQL will run as, and lets that user pass the folder
 * above.
 */
export function handOver(runAs: RunAs, folder: string, above: string): void {
  const { uid, gid } = runAs.ids;
  if (uid === undefined || gid === undefined) return;
  chownSync(folder, uid, gid);
  // Only for passing through: listing and reading stay forbidden.
  chmodSync(above, (statSync(above).mode & 0o777) | 0o011);
}

function works(runAs: RunAs, program: string): boolean {
  const [command, args] = commandLine(runAs, program, ["--version"]);
  return spawnSync(command, args, { ...runAs.ids, cwd: "/", stdio: "ignore" }).status === 0;
}

/** Whether a user may pass through a folder and all those above it. */
function canPass(ids: Ids, folder: string): boolean {
  const { uid, gid, mode } = statSync(folder);
  const needed = uid === ids.uid ? 0o100 : gid === ids.gid ? 0o010 : 0o001;
  const above = dirname(folder);
  return (mode & needed) !== 0 && (above === folder || canPass(ids, above));
}

function findUser(name: string): Ids | undefined {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(":");
  return fields && { uid: Number(fields[2]), gid: Number(fields[3]) };
}
