/** The processes of the embedded PostgreSQL: making the database, starting the server, finding and
 * stopping a running one. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import {
  chooseListen,
  embeddedUser,
  type Listen,
  listenFlags,
  loopbackPassword,
  passwordFile,
} from "./embedded-address.ts";
import { type Binaries, findBinaries } from "./embedded-binaries.ts";
import { chooseRunAs, commandLine, handOver } from "./embedded-user.ts";

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
  /** The mark as it was read. */
  readonly text: string;
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

/**
 * Makes the database where there is none yet. It is made aside and moved in place whole: a crash
 * leaves no half of one, and of two processes at once one wins and the other uses its work.
 */
export function initialize(site: Site): void {
  if (fs.existsSync(join(site.folder, "PG_VERSION"))) return;
  removeLeftovers(site.folder);
  const fresh = `${site.folder}.new-${process.pid}`;
  try {
    runInitdb(site, fresh);
    fs.renameSync(fresh, site.folder);
  } catch (error) {
    fs.rmSync(fresh, { recursive: true, force: true });
    if (!fs.existsSync(join(site.folder, "PG_VERSION"))) throw error;
  }
}

/**
 * Starts the server, in a session of its own: Ctrl-C in the terminal must not end it before us.
 *
 * @param before where its predecessor listened, if this process used one.
 */
export async function startServer(site: Site, before: Listen | undefined): Promise<ChildProcess> {
  const binaries = findBinaries();
  const runAs = chooseRunAs(binaries.postgres, site.folder);
  const listen = await chooseListen(site.folder, site.sockets, before);
  removeSocketMark(site, listen);
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
    return child;
  } finally {
    fs.closeSync(log);
  }
}

/** Reads the mark that a server leaves in its folder; `undefined` where there is none, or half of one. */
export function readPostmaster(site: Site): Postmaster | undefined {
  const text = readText(markFile(site.folder)) ?? "";
  const [pid, , , port, folder] = text.split("\n");
  // It is written line by line: an empty folder would lead a client to the default server. A negative
  // process id is that of a maintenance program, which nobody can connect to.
  if (!(Number(pid) > 0) || !port || folder === undefined) return undefined;
  if (site.sockets && !folder) return undefined;
  const listen: Listen = site.sockets
    ? { kind: "socket", folder, port: Number(port) }
    : { kind: "loopback", port: Number(port), password: loopbackPassword(site.folder) };
  return { pid: Number(pid), listen, text };
}

/** Whether that process lives and is the server of this folder: process ids are used again. */
export function isServing(site: Site, pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  if (process.platform === "linux") {
    try {
      return fs.readlinkSync(`/proc/${pid}/cwd`) === site.folder;
    } catch (error) {
      // EACCES: alive, of another user. ENOENT: dead, waiting for its parent to notice.
      return error instanceof Error && "code" in error && error.code === "EACCES";
    }
  }
  if (process.platform === "win32") return true;
  const found = spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" });
  return found.stdout.includes(site.folder);
}

/** Removes the mark of a dead server: where its process id is in use again, or where nobody has noticed
 * its death yet, PostgreSQL would refuse to start. */
export function removeMark(site: Site, dead: Postmaster): void {
  removeFile(markFile(site.folder), dead.text);
}

/** The same for the mark of its socket. */
function removeSocketMark(site: Site, listen: Listen): void {
  if (listen.kind === "loopback") return;
  const mark = join(listen.folder, `.s.PGSQL.${listen.port}.lock`);
  const text = readText(mark);
  if (text !== undefined && !isServing(site, Number.parseInt(text, 10))) removeFile(mark, text);
}

/** Removes a file where it still says what was judged: another process may have written a new one. */
function removeFile(file: string, text: string): void {
  const aside = `${file}.${process.pid}`;
  try {
    fs.renameSync(file, aside);
    if (fs.readFileSync(aside, "utf8") === text) fs.unlinkSync(aside);
    else fs.renameSync(aside, file);
  } catch {
    // Somebody else removed it.
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

function runInitdb(site: Site, fresh: string): void {
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
  const run = spawnSync(command, rest, {
    ...runAs.ids,
    cwd: fresh,
    env: environment(),
    encoding: "utf8",
  });
  if (run.status !== 0) {
    const said = run.error?.message ?? `${run.stdout}\n${run.stderr}`.trim();
    throw new Error(`PostgreSQL could not make its database in ${site.folder}: ${said}`);
  }
}

/** Removes what processes that died while making the database left behind. */
function removeLeftovers(folder: string): void {
  const start = `${basename(folder)}.new-`;
  for (const name of fs.readdirSync(dirname(folder))) {
    if (!name.startsWith(start)) continue;
    try {
      process.kill(Number(name.slice(start.length)), 0);
    } catch {
      fs.rmSync(join(dirname(folder), name), { recursive: true, force: true });
    }
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
