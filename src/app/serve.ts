/**
 * The life of a server: start, announce, wait for a signal, drain, end. With several workers, this process
 * supervises them.
 */
import type { Logger } from "pino";
import { buildApp } from "../app.ts";
import type { Config, Settings } from "../config/config.ts";
import { startEmbedded, type Embedded } from "../db/embedded.ts";
import { firstSignal } from "../server/first-signal.ts";
import { createServerLog } from "../server/server-log.ts";
import { Supervisor } from "../server/supervisor.ts";
import { setV8Flags } from "../server/v8-flags.ts";
import { openBackend } from "./backend.ts";
import { openPages, findPages } from "./pages.ts";
import { announce } from "./welcome.ts";

/** Settings and configuration of this installation. */
interface ServeOptions {
  readonly settings: Settings;
  readonly config: Config;
  /** Reads the configuration again, for SIGHUP. @throws where it is faulty */
  readonly readConfig: () => Promise<Config>;
}

/**
 * Runs a gateway until SIGTERM, SIGINT or SIGHUP. Resolves when it has drained. A second signal ends the process at
 * once. With several workers SIGHUP replaces them instead, unless it says that the terminal was closed.
 */
export async function serve(options: ServeOptions): Promise<void> {
  setV8Flags();
  if (options.settings.workers > 1) return supervise(options);
  const { drainDelayMs: delayMs } = options.settings;
  const signal = firstSignal();
  const stopping = new AbortController();
  const logging = createServerLog(options);
  const { log } = logging;
  try {
    const pages = openPages(log, stopping.signal);
    const app = await buildApp({ ...options, log, pages });
    try {
      await announce(app, { ...options, log, urls: await app.listen() });
      log.info({ signal: await signal, delayMs }, "stopping");
      await app.close({ delayMs });
    } finally {
      stopping.abort();
      await app.close();
    }
    log.info("stopped");
  } finally {
    logging.flush();
  }
}

/** Database connections besides those of workers: command lines and the supervisor. */
const otherConnections = 20;

/** Most connections that one worker opens, rounded up. While workers are replaced there is one more of them. */
const workerConnections = 45;

/**
 * Runs several workers until SIGTERM or SIGINT. Resolves when all have drained. A second signal kills them.
 *
 * @throws the first failure at start, or where a worker exited while draining
 */
async function supervise(options: ServeOptions): Promise<void> {
  const { settings, config } = options;
  const write = (lines: string): void => void process.stdout.write(lines);
  const { log } = createServerLog(options, { sink: { write } });
  let workers: Supervisor | undefined;
  const signal = firstSignal({
    onSecond: () => workers?.kill(),
    ...(!hasTerminal() && { onHangUp: () => void workers?.restart(options.readConfig) }),
  });
  const embedded = await startDatabase(options, log);
  const stopping = new AbortController();
  try {
    const pages = findPages(log, stopping.signal);
    const order = { settings, config, embeddedUrl: embedded?.url };
    workers = new Supervisor({ order, pages, log, write });
    try {
      await start(workers, { ...order, log });
      log.info({ signal: await signal, delayMs: settings.drainDelayMs }, "stopping");
    } finally {
      stopping.abort();
      await workers.stop();
    }
  } finally {
    await embedded?.stop();
  }
  log.info("stopped");
}

/** Whether a closed terminal, not an operator, may be what sends SIGHUP. */
function hasTerminal(): boolean {
  return process.stdin.isTTY || process.stdout.isTTY;
}

/** Migrates the schema, starts the workers, and announces the gateway. */
async function start(
  workers: Supervisor,
  options: WorkerOptions & { readonly log: Logger; readonly embeddedUrl: string | undefined },
): Promise<void> {
  const backend = await openBackend(options);
  try {
    await announce(backend, { ...options, urls: await workers.start() });
  } finally {
    await backend.close();
  }
}

/** Settings and configuration of all workers. */
type WorkerOptions = Omit<ServeOptions, "readConfig">;

/** Starts the embedded PostgreSQL, with connections for all workers, where no other database is configured. */
async function startDatabase(
  { settings: { databaseUrl, dataDir, workers } }: WorkerOptions,
  log: Logger,
): Promise<Embedded | undefined> {
  if (databaseUrl !== undefined) return undefined;
  const connections = Math.max(100, otherConnections + workerConnections * (workers + 1));
  const lines = { info: (line: string) => log.info(line), warn: (line: string) => log.warn(line) };
  return startEmbedded({ dataDir, log: lines, connections });
}
