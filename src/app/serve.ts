/**
 * The life of a server: start, announce, wait for a signal, drain, end. With several workers, this
 * process supervises them.
 */
import { rmSync } from "node:fs";
import type { Logger } from "pino";
import { operatorSocket } from "../core/data-sockets.ts";
import type { Config, Settings } from "../config/config.ts";
import type { ReadConfig } from "./config-loader.ts";
import { LogOutput } from "../observe/log-output.ts";
import { type Embedded, ownDataFolder, startEmbedded } from "../db/embedded/embedded.ts";
import { createServerLog } from "./process-log.ts";
import { Supervisor } from "./supervisor.ts";
import { setV8Flags } from "./v8-flags.ts";
import { receiveStop } from "./stop-signals.ts";
import { openBackend } from "./backend.ts";
import { findPages, openPages } from "./pages.ts";
import { watchedFile } from "./config-loader.ts";
import { type WelcomeOptions, announce } from "./welcome.ts";

/** Settings and configuration of this installation. */
interface ServeOptions {
  readonly settings: Settings;
  readonly config: Config;
  /**
   * Reads the configuration again, for SIGHUP.
   *
   * @throws if it is faulty
   */
  readonly readConfig: ReadConfig;
}

/**
 * Runs a gateway until SIGTERM or SIGINT. Resolves when it has drained. A second SIGTERM or SIGINT
 * ends the process without a drain. SIGHUP loads the configuration again; several workers are
 * replaced by new ones. If SIGHUP means that the terminal was closed, it stops the gateway.
 */
export async function serve(options: ServeOptions): Promise<void> {
  setV8Flags();
  const output = new LogOutput();
  try {
    await (options.settings.workers > 1 ? supervise : serveAlone)(options, output);
  } finally {
    await output.flush();
  }
}

/** Serves in this process, which has no workers. */
async function serveAlone(options: ServeOptions, output: LogOutput): Promise<void> {
  const logging = createServerLog(options, { output });
  const { log } = logging;
  const database = startDatabase(options, log);
  const reloads = new Reloads();
  const signal = receiveStop({
    onSecond: () => stopDatabase(database),
    onHangUp: () => reloads.request(),
  });
  try {
    try {
      const { url: embeddedUrl } = await database;
      const onConfig = logging.hideSecrets;
      await serveUntil(signal, { ...options, log, output, embeddedUrl, reloads, onConfig });
    } finally {
      await stopDatabase(database);
    }
    log.info("stopped");
  } finally {
    await logging.flush();
  }
}

/** Serves until the signal, then drains. */
async function serveUntil(
  signal: Promise<NodeJS.Signals>,
  options: ServeOptions &
    Pick<WelcomeOptions, "log" | "output"> & {
      readonly embeddedUrl: string | undefined;
      readonly reloads: Reloads;
      readonly onConfig: (config: Config) => void;
    },
): Promise<void> {
  const { log } = options;
  const { drainDelayMs: delayMs } = options.settings;
  const stopping = new AbortController();
  const pages = openPages(log, stopping.signal);
  // Not at the top: a supervisor serves no calls, so it does not load this part of the program.
  const { openGateway } = await import("./gateway.ts");
  const gateway = await openGateway({
    settings: options.settings,
    config: options.config,
    readConfig: options.readConfig,
    configFile: watchedFile(options.settings, true),
    onConfig: options.onConfig,
    embeddedUrl: options.embeddedUrl,
    log,
    pages,
    operatorSocket: operatorSocket(options.settings.dataDir),
  });
  try {
    options.reloads.follow(() => gateway.reload());
    const { config } = gateway;
    await announce(gateway, { ...options, config, listen: () => gateway.listen() });
    log.info({ signal: await signal, delayMs }, "stopping");
    await gateway.close({ delayMs });
  } finally {
    stopping.abort();
    await gateway.close();
  }
}

/** SIGHUP of a process without workers. A signal before the gateway is open is served then. */
class Reloads {
  #isRequested = false;
  #reload: (() => Promise<unknown>) | undefined;

  request(): void {
    this.#isRequested = true;
    // The gateway has logged why, and goes on with the configuration before.
    void this.#reload?.().catch(() => {});
  }

  follow(reload: () => Promise<unknown>): void {
    this.#reload = reload;
    if (this.#isRequested) this.request();
  }
}

/** Database connections in addition to those of workers: command lines and the supervisor. */
const otherConnections = 20;

/**
 * Maximum number of connections of one worker, rounded up. While workers are replaced there is one
 * more of them.
 */
const workerConnections = 45;

/**
 * Runs several workers until SIGTERM or SIGINT. Resolves when all have drained. A second one kills
 * them.
 *
 * @throws the first failure at start, or if a worker exited while draining
 */
async function supervise(options: ServeOptions, output: LogOutput): Promise<void> {
  const { settings, config } = options;
  const write = (lines: string): void => output.write(lines);
  const { log } = createServerLog(options, { sink: { write } });
  let workers: Supervisor | undefined;
  const database = startDatabase(options, log);
  const signal = receiveStop({
    onSecond: () => {
      workers?.kill();
      return stopDatabase(database);
    },
    onHangUp: () => void workers?.restart(options.readConfig),
  });
  const stopping = new AbortController();
  try {
    const pages = findPages(log, stopping.signal);
    const order = { settings, config, embeddedUrl: (await database).url };
    workers = new Supervisor({ order, pages, log, write });
    try {
      await start(workers, { ...order, readConfig: options.readConfig, log, output });
      log.info({ signal: await signal, delayMs: settings.drainDelayMs }, "stopping");
    } finally {
      stopping.abort();
      await workers.stop();
    }
  } finally {
    await stopDatabase(database);
  }
  log.info("stopped");
}

/** Migrates the schema, starts the workers, and announces the gateway. */
async function start(
  workers: Supervisor,
  options: ServeOptions &
    Pick<WelcomeOptions, "log" | "output"> & { readonly embeddedUrl: string | undefined },
): Promise<void> {
  const backend = await openBackend(options);
  try {
    const config = backend.config.current;
    await announce(backend, { ...options, config, listen: () => workers.start(config) });
  } finally {
    await backend.close();
  }
}

/**
 * Owns the data folder. Starts the embedded PostgreSQL in it, with connections for all processes,
 * if no other database is configured.
 */
async function startDatabase(
  { settings: { databaseUrl, dataDir, workers } }: ServeOptions,
  log: Logger,
): Promise<Embedded> {
  if (databaseUrl !== undefined) {
    const folder = await ownDataFolder(dataDir);
    removeSocket(dataDir);
    return { url: databaseUrl, stop: () => folder.release() };
  }
  const connections = Math.max(100, otherConnections + workerConnections * (workers + 1));
  const lines = { info: (line: string) => log.info(line), warn: (line: string) => log.warn(line) };
  const embedded = await startEmbedded({ dataDir, log: lines, connections });
  removeSocket(dataDir);
  return embedded;
}

/** Removes the socket that a killed gateway left in the data folder. */
function removeSocket(dataDir: string): void {
  const path = operatorSocket(dataDir);
  if (path !== undefined) rmSync(path, { force: true });
}

/** Stops the embedded PostgreSQL once it has started, and releases the data folder. */
async function stopDatabase(starting: Promise<Embedded>): Promise<void> {
  const embedded = await starting.catch(() => undefined);
  await embedded?.stop();
}
