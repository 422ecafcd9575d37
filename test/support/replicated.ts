/**
 * A PostgreSQL primary with a synchronous standby, which can die, freeze, and be followed by the
 * other.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import {
  chooseRunAs,
  commandLine,
  handOver,
  type RunAs,
} from "../../src/db/embedded/server-user.ts";
import { findBinaries } from "../../src/db/embedded/programs.ts";
import { freePort } from "../../src/db/embedded/address.ts";

/** The programs that are needed. */
export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
}

/** Options of {@link startReplicated}. */
export interface ReplicatedOptions {
  /** Default: the embedded PostgreSQL's. */
  readonly programs?: PostgresPrograms;
  /** Whether a power loss may destroy the data. Default false. */
  readonly isFast?: boolean;
}

const user = "postgres";
const password = "replicated";

/** Maximum time for a server to start, or to be replicated. */
const patienceMs = 60_000;

/** One of the two servers. */
export class PostgresServer {
  /** Its own address. */
  readonly url: string;
  readonly port: number;
  readonly #folder: string;
  readonly #programs: PostgresPrograms;
  readonly #runAs: RunAs;
  readonly #settings: readonly string[];
  #child: ChildProcess | undefined;

  constructor(parts: {
    readonly folder: string;
    readonly programs: PostgresPrograms;
    readonly runAs: RunAs;
    readonly port: number;
    readonly settings: readonly string[];
  }) {
    this.port = parts.port;
    this.url = `postgresql://${user}:${password}@127.0.0.1:${parts.port}/postgres`;
    this.#folder = parts.folder;
    this.#programs = parts.programs;
    this.#runAs = parts.runAs;
    this.#settings = parts.settings;
  }

  /** Starts it. Resolves when it answers. @param more settings that count above the others */
  async start(more: readonly string[] = []): Promise<void> {
    const settings = [...this.#settings, ...more].flatMap((setting) => ["-c", setting]);
    const args = ["-D", this.#folder, ...settings];
    const [command, rest] = commandLine(this.#runAs, this.#programs.postgres, args);
    const log = fs.openSync(`${this.#folder}.log`, "a");
    this.#child = spawn(command, rest, {
      ...this.#runAs.ids,
      cwd: this.#folder,
      env: { PATH: process.env["PATH"], LC_ALL: "C" },
      stdio: ["ignore", log, log],
      detached: true,
    });
    fs.closeSync(log);
    await this.until("select 1 where true");
  }

  /** Resolves when this statement returns a row. */
  async until(text: string): Promise<void> {
    for (const end = Date.now() + patienceMs; ; await sleep(20)) {
      const rows = await this.query(text).catch(() => []);
      if (rows.length > 0) return;
      if (this.#child?.exitCode !== null || Date.now() > end) {
        const said = fs.readFileSync(`${this.#folder}.log`, "utf8").slice(-2_000);
        throw new Error(`PostgreSQL: not within ${patienceMs} ms: ${text}\n${said}`);
      }
    }
  }

  /** Runs a statement on a new connection. */
  async query(text: string): Promise<readonly object[]> {
    const client = new Client({
      connectionString: this.url,
      connectionTimeoutMillis: 5_000,
      query_timeout: patienceMs,
    });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query<object>(text)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** Ends all its processes at once, as a machine that loses power. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("close", resolve));
    this.#signal("SIGKILL");
    await ended;
  }

  /** Stops all its processes if they are: its connections stay open, and nothing answers. */
  freeze(): void {
    this.#signal("SIGSTOP");
  }

  /** Lets them go on. */
  thaw(): void {
    this.#signal("SIGCONT");
  }

  /** Makes the standby the primary. Resolves when it takes writes. */
  async promote(): Promise<void> {
    await this.query("select pg_promote(true, 60)");
    await this.until("select 1 where not pg_is_in_recovery()");
  }

  /** The server first: it would start others in place of those that die. */
  #signal(name: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    const children = childrenOf(pid);
    for (const each of [pid, ...children]) {
      try {
        process.kill(each, name);
      } catch {
        // It has ended meanwhile.
      }
    }
  }
}

/** Both. */
export interface Replicated {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  close(): Promise<void>;
}

/** Starts both below `folder`. Resolves when the standby is synchronous. Close it. */
export async function startReplicated(
  folder: string,
  { programs = findBinaries(), isFast = false }: ReplicatedOptions = {},
): Promise<Replicated> {
  const [first, second] = [join(folder, "primary"), join(folder, "standby")];
  const runAs = chooseRunAs(programs.initdb, first);
  await initialize(first, programs, runAs);
  // It was never started, so a copy of it equals its state at the start of the log that the standby
  // requests.
  fs.cpSync(first, second, { recursive: true });
  fs.writeFileSync(join(second, "standby.signal"), "");
  giveTo(runAs, second);
  const common = [
    ...["listen_addresses=127.0.0.1", "unix_socket_directories=", "wal_level=replica"],
    ...["wal_keep_size=1GB", "max_connections=100", "shared_buffers=32MB"],
    ...(isFast ? ["fsync=off", "full_page_writes=off"] : []),
  ];
  const serverOf = async (at: string, settings: readonly string[]): Promise<PostgresServer> => {
    const port = await freePort();
    const own = [...common, ...settings, `port=${port}`];
    return new PostgresServer({ folder: at, programs, runAs, port, settings: own });
  };
  const primary = await serverOf(first, ["synchronous_standby_names=standby"]);
  const from = `host=127.0.0.1 port=${primary.port} user=${user} password=${password} application_name=standby`;
  const standby = await serverOf(second, [`primary_conninfo=${from}`]);
  const close = async (): Promise<void> => {
    await Promise.all([primary.kill(), standby.kill()]);
  };
  try {
    await primary.start();
    await standby.start();
    await primary.until("select 1 from pg_stat_replication where sync_state = 'sync'");
  } catch (error) {
    await close();
    throw error;
  }
  return { primary, standby, close };
}

/** Starts a server alone, below `folder`. Kill it. */
export async function startPostgres(
  folder: string,
  { programs = findBinaries(), isFast = false }: ReplicatedOptions = {},
): Promise<PostgresServer> {
  const at = join(folder, "server");
  const runAs = chooseRunAs(programs.initdb, at);
  await initialize(at, programs, runAs);
  const port = await freePort();
  const settings = [
    ...["listen_addresses=127.0.0.1", "unix_socket_directories=", `port=${port}`],
    ...["max_connections=200", "shared_buffers=32MB", ...(isFast ? ["fsync=off"] : [])],
  ];
  const server = new PostgresServer({ folder: at, programs, runAs, port, settings });
  await server.start();
  return server;
}

async function initialize(at: string, programs: PostgresPrograms, runAs: RunAs): Promise<void> {
  fs.mkdirSync(at, { recursive: true, mode: 0o700 });
  const passwordFile = `${at}.password`;
  fs.writeFileSync(passwordFile, password);
  handOver(runAs, at, join(at, ".."));
  giveTo(runAs, passwordFile);
  const auth = ["--auth=scram-sha-256", `--pwfile=${passwordFile}`];
  const args = ["-D", at, "-U", user, "-E", "UTF8", "--locale=C", "--no-sync", ...auth];
  const [command, rest] = commandLine(runAs, programs.initdb, args);
  const env = { PATH: process.env["PATH"], LC_ALL: "C" };
  await promisify(execFile)(command, rest, { ...runAs.ids, cwd: at, env });
}

/** A folder with all in it, or a file. */
function giveTo({ ids: { uid, gid } }: RunAs, path: string): void {
  if (uid === undefined || gid === undefined) return;
  fs.chownSync(path, uid, gid);
  if (!fs.statSync(path).isDirectory()) return;
  for (const name of fs.readdirSync(path, { recursive: true }) as string[]) {
    fs.chownSync(join(path, name), uid, gid);
  }
}

function childrenOf(pid: number): number[] {
  return fs.readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      // The name of the program is in parentheses, and may have spaces.
      const [, parent] =
        fs.readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      return Number(parent) === pid ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
