/** The lifecycle of one of several workers: it serves until its supervisor stops it or exits. */
import cluster, { type Worker } from "node:cluster";
import { operatorSocket } from "../core/data-sockets.ts";
import { failureMessage } from "../core/error-words.ts";
import type { MetricSnapshot } from "../observe/metrics.ts";
import { readConfigFile, watchedFile } from "./config-loader.ts";
import { type Gateway, openGateway } from "./gateway.ts";
import { readFound } from "./pages.ts";
import { createServerLog } from "./process-log.ts";
import { setV8Flags } from "./v8-flags.ts";
import type { FromWorker, ListenUrls, ToWorker, WorkerOrder } from "./worker-messages.ts";

/**
 * Runs this process as a worker. Never rejects: a failed start is reported to the supervisor, and
 * the exit code is 1.
 */
export async function runWorker(): Promise<void> {
  // A terminal signals the workers too, but the supervisor decides when they end.
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => {});
  const supervisor = new SupervisorLink(thisWorker());
  try {
    const order = await supervisor.order;
    if (order !== undefined) await serveUntilStopped(order, supervisor);
  } catch (error) {
    process.exitCode = 1;
    supervisor.send({ kind: "failed", reason: failureMessage(error) });
  }
  supervisor.leave();
}

async function serveUntilStopped(order: WorkerOrder, supervisor: SupervisorLink): Promise<void> {
  setV8Flags();
  const logging = createServerLog(order, { worker: order.worker });
  const { log } = logging;
  try {
    const gateway = await openGateway({
      ...order,
      log,
      pages: supervisor.pagesFolder.then((folder) => readFound(folder, log)),
      readMetrics: () => supervisor.readAllMetrics(),
      readConfig: readConfigFile,
      onConfig: logging.hideSecrets,
      configFile: watchedFile(order.settings, order.worker === 1),
      // The supervisor has read it: a file that became faulty must not stop a worker that died.
      onUnreadable: (error) =>
        log.error({ reason: failureMessage(error) }, "the configuration at the start is in force"),
      reloadOthers: () => supervisor.send({ kind: "reloadOthers" }),
      operatorSocket: operatorSocket(order.settings.dataDir),
    });
    try {
      // A supervisor that has exited opens no port for its workers.
      const urls = await Promise.race([gateway.listen(), supervisor.stopped.then(() => undefined)]);
      if (urls !== undefined) supervisor.serve(gateway, urls);
      const { isReplaced, isOrphaned } = await supervisor.stopped;
      // Without a supervisor no client can connect any longer.
      const delayMs = isOrphaned ? 0 : order.settings.drainDelayMs;
      await gateway.close({ delayMs, isReplaced });
      await supervisor.sendMetrics();
    } finally {
      await gateway.close();
    }
  } finally {
    await logging.flush();
  }
}

function thisWorker(): Worker {
  if (cluster.worker === undefined) throw new Error("this program is started by `uas serve`");
  return cluster.worker;
}

/** Why a worker must drain. */
interface StopOrder {
  /** Whether another worker already serves in its place. */
  readonly isReplaced: boolean;
  /** Whether its supervisor is gone. */
  readonly isOrphaned: boolean;
}

/** The worker's connection to its supervisor. */
class SupervisorLink {
  /** The order to serve with; undefined if the worker is stopped before it gets one. */
  readonly order: Promise<WorkerOrder | undefined>;
  /** The folder of the console's pages; undefined if there is none. */
  readonly pagesFolder: Promise<string | undefined>;
  /**
   * Resolves when this process must drain: on the supervisor's order, or because the supervisor is
   * gone.
   */
  readonly stopped: Promise<StopOrder>;
  readonly #worker: Worker;
  readonly #order = Promise.withResolvers<WorkerOrder | undefined>();
  readonly #pages = Promise.withResolvers<string | undefined>();
  readonly #stopped = Promise.withResolvers<StopOrder>();
  readonly #asked = new Map<number, (text: string) => void>();
  #askedCount = 0;
  #gateway: Gateway | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    this.order = this.#order.promise;
    this.pagesFolder = this.#pages.promise;
    this.stopped = this.#stopped.promise;
    worker.on("message", (message: ToWorker) => this.#onMessage(message));
    // The supervisor has just exited; its disconnect is handled below.
    worker.on("error", () => {});
    worker.on("disconnect", () => {
      // Node.js would exit here and break the running calls.
      worker.exitedAfterDisconnect = true;
      this.#stop({ isReplaced: false, isOrphaned: true });
      for (const answer of this.#asked.values()) answer("");
    });
    this.send({ kind: "here" });
  }

  send(message: FromWorker): void {
    // Without a supervisor there is no recipient.
    if (this.#worker.isConnected()) this.#worker.send(message);
  }

  /** Reports that this worker serves. */
  serve(gateway: Gateway, urls: ListenUrls): void {
    this.#gateway = gateway;
    this.send({ kind: "listening", urls });
  }

  /** The metrics of all workers as text; without a supervisor, the metrics of this one. */
  readAllMetrics(): Promise<string> {
    if (!this.#worker.isConnected())
      return this.#gateway?.metrics.registry.metrics() ?? Promise.resolve("");
    const id = ++this.#askedCount;
    const answer = Promise.withResolvers<string>();
    this.#asked.set(id, answer.resolve);
    this.send({ kind: "readAll", id });
    return answer.promise;
  }

  /** Closes the channel, which would keep this process alive. */
  leave(): void {
    if (this.#worker.isConnected()) this.#worker.disconnect();
  }

  #onMessage(message: ToWorker): void {
    switch (message.kind) {
      case "start":
        this.#order.resolve(message.order);
        break;
      case "pages":
        this.#pages.resolve(message.folder);
        break;
      case "readOwn":
        void this.sendMetrics(message.id);
        break;
      case "all":
        this.#asked.get(message.id)?.(message.text);
        this.#asked.delete(message.id);
        break;
      case "reload":
        // The gateway logs a failure.
        void this.#gateway?.reload().catch(() => {});
        break;
      case "stop":
        this.#stop({ isReplaced: message.isReplaced, isOrphaned: false });
        break;
    }
  }

  #stop(order: StopOrder): void {
    this.#order.resolve(undefined);
    this.#pages.resolve(undefined);
    this.#stopped.resolve(order);
  }

  /**
   * Sends the metrics of this worker.
   *
   * @param id id of the request. Without a request by default
   */
  async sendMetrics(id = 0): Promise<void> {
    const metrics = await this.#gateway?.metrics.registry.getMetricsAsJSON();
    this.send({ kind: "own", id, metrics: (metrics ?? []) as unknown as MetricSnapshot[] });
  }
}
