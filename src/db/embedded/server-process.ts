/**
 * The processes of the embedded PostgreSQL: creating the database, starting the server, finding and
 * stopping a running one.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
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
import { findBinaries, type Binaries } from "./programs.ts";
import { chooseRunAs, commandLine, handOver } from "./server-user.ts";

/** An embedded server's fixed facts. */
export interface Site {
  /** The database's folder, absolute and without links. */
  readonly folder: string;
  /** The file for the server's output. */
  readonly logFile: string;
  /** Whether to listen on a socket rather than on loopback. */
  readonly sockets: boolean;
  /** Whether a power loss may destroy the data: for tests only. */
  readonly testing: boolean;
  /** Maximum number of client connections. Default: see {@link serverSettings}. */
  readonly connections?: number | undefined;
}

/** A server that left its `postmaster.pid` in the folder; it may be dead. */
export interface Postmaster {
  readonly pid: number;
  readonly listen: Listen;
}

/** A server that was started. */
export interface StartedServer {
  readonly child: ChildProcess;
  readonly listen: Listen;
}

/** The server's log is renamed at start if it is longer than this. */
const logBytesMax = 16 * 1024 * 1024;

/**
 * A gateway's server: many short transactions, little memory; fsync and synchronous_commit stay on.
 */
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

/**
 * Creates the database. It is created in a temporary folder and renamed when complete, so that a
 * crash leaves no incomplete database.
 */
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
 * Starts the server in a separate operating system session: Ctrl-C in the terminal must not end it
 * before this process.
 *
 * @param before the address of its predecessor, if this process used one.
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
    // Without a listener a program that cannot be run would end this process; exitCode stays null
    // then.
    child.on("error", (error) => fs.appendFileSync(site.logFile, `${error.message}\n`));
    return { child, listen };
  } finally {
    fs.closeSync(log);
  }
}

/** The address of the running server of this folder; undefined if no `postmaster.pid` names one. */
export function findListen(site: Site): Listen | undefined {
  // Not from `postmaster.pid`: a container that shares the folder may have it under another path.
  return site.sockets ? socketListen(site.folder) : readPostmaster(site)?.listen;
}

/** Reads the `postmaster.pid` in the server's folder; undefined if it is absent or incomplete. */
export function readPostmaster(site: Site): Postmaster | undefined {
  const text = readText(markFile(site.folder)) ?? "";
  const [pid, , , port] = text.split("\n");
  // The file is written line by line. A negative process id belongs to a maintenance program, which
  // accepts no connections.
  if (!(Number(pid) > 0) || !port) return undefined;
  const listen: Listen = site.sockets
    ? socketListen(site.folder)
    : { kind: "loopback", port: Number(port), password: loopbackPassword(site.folder) };
  return { pid: Number(pid), listen };
}

/**
 * Whether that process is alive and is the server of this folder: process ids are reused. Valid for
 * processes of this container only.
 */
export function isServing(site: Site, pid: number): boolean {
  if (!isProcessAlive(pid)) return false;
  if (process.platform === "linux") {
    try {
      const theirs = fs.statSync(`/proc/${pid}/cwd`);
      const ours = fs.statSync(site.folder);
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

/**
 * Removes `postmaster.pid` and the socket lock of a dead server: if its process id is in use again,
 * PostgreSQL would refuse to start.
 */
export function removeMarks(site: Site): void {
  fs.rmSync(markFile(site.folder), { force: true });
  if (!site.sockets) return;
  const { folder, port } = socketListen(site.folder);
  fs.rmSync(join(folder, `.s.PGSQL.${port}.lock`), { force: true });
}

/** Whether a process is alive. Another user's process counts; ids are reused for other programs. */
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

/**
 * Requests a server to stop now: open transactions are rolled back, everything committed is kept.
 */
export function signalStop(site: Site, pid: number): void {
  if (process.platform === "win32") {
    // Windows has no signals: Node would kill the process.
    const { pgCtl } = findBinaries();
    spawnSync(pgCtl, ["stop", "-D", site.folder, "-m", "fast", "-W"], { stdio: "ignore" });
    return;
  }
  try {
    process.kill(pid, "SIGINT");
  } catch {
    // The process has already exited.
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
    // The folder's permissions protect the socket; the network has no access.
    args.push("--auth-local=trust", "--auth-host=reject");
  } else {
    loopbackPassword(site.folder);
    args.push("--auth=scram-sha-256", `--pwfile=${passwordFile(site.folder)}`);
  }
  const [command, rest] = commandLine(runAs, binaries.initdb, args);
  try {
    // Asynchronous, because meanwhile this process must answer as the owner of the folder.
    await promisify(execFile)(command, rest, { ...runAs.ids, cwd: fresh, env: environment() });
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`PostgreSQL could not create its database in ${site.folder}: ${said}`, {
      cause,
    });
  }
}

/** Only the variables that a program needs to run: the full environment contains secrets. */
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
