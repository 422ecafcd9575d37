/** Sockets in the data folder, which only its owner can enter. */
import { createHash } from "node:crypto";
import { lstatSync, readlinkSync, realpathSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * The socket on which a gateway serves the command line. Who may open it is the operator. Undefined
 * on Windows, whose pipes are in no folder.
 *
 * @param dataDir the data folder, which exists
 * @throws if its path is too long for a socket; the message says what to do
 */
export function operatorSocket(dataDir: string): string | undefined {
  if (process.platform === "win32") return undefined;
  return join(socketFolder(realpathSync(dataDir)), "operator.sock");
}

/**
 * The address of a database, so that a command can compare its own with that of a gateway. A hash,
 * because the address may contain a password. Empty for the embedded PostgreSQL.
 */
export function databaseHash(databaseUrl: string | undefined): string {
  return databaseUrl === undefined ? "" : createHash("sha256").update(databaseUrl).digest("hex");
}

/**
 * The longest path of a Unix socket, in bytes, that every system accepts (macOS 103, Linux 107).
 */
const socketPathBytesMax = 103;

/** The longest name of a socket in the data folder. */
const longestName = ".s.PGSQL.5432";

/**
 * The folder itself, or a link to it if its path is too long for a socket. The socket is in the
 * folder in any case, so that containers with separate temporary folders find it.
 *
 * @throws if the link cannot be made; the message says what to do
 */
export function socketFolder(folder: string): string {
  if (isShort(folder)) return folder;
  const hash = createHash("sha256").update(folder).digest("hex").slice(0, 16);
  const link = join(tmpdir(), `uas-data-${hash}`);
  if (!isShort(link)) throw tooLong(folder, `that of the temporary folder is too long, too`);
  try {
    symlinkSync(folder, link);
  } catch (cause) {
    // It may exist already, also by a process that starts at the same time.
    const found = lstatSync(link, { throwIfNoEntry: false });
    if (found === undefined) throw tooLong(folder, `${link} cannot be created`, cause);
    const isOurs = found.isSymbolicLink() && found.uid === process.getuid?.();
    if (!isOurs || readlinkSync(link) !== folder) {
      throw tooLong(folder, `${link} is not a link of this user to it: remove it`, cause);
    }
  }
  return link;
}

function isShort(folder: string): boolean {
  return Buffer.byteLength(join(folder, longestName)) <= socketPathBytesMax;
}

function tooLong(folder: string, reason: string, cause?: unknown): Error {
  return new Error(
    `The path of the data folder, ${folder}, is too long for a socket, and ${reason}. Set UAS_DATA_DIR or TMPDIR to a shorter path.`,
    { cause },
  );
}
