/**
 * Process: the load that wrk cannot make: streams, and requests at fixed times. Each message of the
 * bench starts a load; it answers with a {@link Reading} when the measurement starts, and with
 * another one at its end.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Arrivals } from "./arrivals.ts";
import { Connection, type ConnectionOwner } from "./connection.ts";
import { requestBody, requestPath, type Scenario } from "./scenario.ts";

/** Target and content of the load. */
export interface LoadOptions {
  readonly scenario: Scenario;
  readonly port: number;
  readonly model: string;
  /** The API key; empty: none is sent. */
  readonly key: string;
  /** Load before the measurement. */
  readonly warmUpMs: number;
  readonly measuredMs: number;
  /**
   * Open loop: requests per second at fixed times. Default: each connection asks again as soon as
   * it has its reply.
   */
  readonly rate?: number;
}

/** Counts so far. */
export interface Reading {
  /** Requests, or chunks. */
  readonly units: number;
  /** Replies with status 429 or 503; not among the units. */
  readonly refused: number;
  /** The first failure; empty: none. */
  readonly failure: string;
  /** Of a request, or from the vendor's writing of a chunk to its arrival. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Connections that are opened at once: a listener refuses or delays more than its backlog. */
const openingMax = 64;

/** Maximum time without an answer. */
const silenceMs = 60_000;

class Load implements ConnectionOwner {
  readonly port: number;
  readonly request: Buffer;
  readonly isPaced: boolean;
  readonly #scenario: Scenario;
  readonly #connections: Connection[] = [];
  readonly #arrivals: Arrivals<Connection> | undefined;
  #opened = 0;
  #replies = 0;
  #replyBytes = 0;
  #receivedBytes = 0;
  #chunks = 0;
  #refused = 0;
  #failure = "";
  #latencies: number[] = [];
  #measuredFromMs = 0;
  #isStopped = false;

  constructor(options: LoadOptions) {
    this.#scenario = options.scenario;
    this.port = options.port;
    this.request = requestBytes(options);
    this.isPaced = options.scenario.stream?.gapMs !== undefined;
    this.#arrivals = options.rate === undefined ? undefined : new Arrivals(options.rate);
    for (let i = 0; i < openingMax; i++) this.#openNext();
  }

  #openNext(): void {
    if (this.#connections.length < this.#scenario.connections) {
      this.#connections.push(new Connection(this));
    }
  }

  onOpen(connection: Connection): void {
    this.#opened++;
    this.#openNext();
    this.#arrivals?.onFree(connection);
    if (this.#opened < this.#scenario.connections) return;
    if (this.#arrivals !== undefined) this.#arrivals.start();
    else for (const each of this.#connections) each.ask(performance.now());
  }

  onBytes(count: number): void {
    this.#receivedBytes += count;
  }

  onChunk(delayMs: number): void {
    this.#chunks++;
    this.#latencies.push(delayMs);
  }

  onReply(connection: Connection, reply: { bytes: number; isRefused: boolean }): void {
    if (reply.isRefused) this.#refused++;
    else this.#onServed(connection, reply.bytes);
    if (this.#isStopped) return;
    if (this.#arrivals === undefined) connection.ask(performance.now());
    else this.#arrivals.onFree(connection);
  }

  #onServed(connection: Connection, bytes: number): void {
    this.#replies++;
    this.#replyBytes += bytes;
    if (!this.isPaced) this.#addLatency(connection.dueMs, performance.now());
  }

  onFailure(message: string): void {
    if (!this.#isStopped) this.#failure ||= message;
  }

  /** Only requests that were due within the measurement. */
  #addLatency(dueMs: number, nowMs: number): void {
    if (dueMs >= this.#measuredFromMs) this.#latencies.push(nowMs - dueMs);
  }

  get units(): number {
    const { stream } = this.#scenario;
    if (this.isPaced) return this.#chunks;
    if (stream === undefined || this.#replies === 0) return this.#replies;
    // Counting events would cost more than receiving them, and all streams have the same number of
    // bytes.
    return Math.round(this.#receivedBytes * ((this.#replies * stream.chunks) / this.#replyBytes));
  }

  /**
   * Waits until more than `units` are counted. @throws if a request failed, or nothing is answered
   */
  async waitBeyond(units: number): Promise<void> {
    for (const end = performance.now() + silenceMs; this.units <= units; await sleep(20)) {
      if (performance.now() > end) this.#failure ||= "nothing was answered";
      if (this.#failure !== "") return;
    }
  }

  /** Forgets the latencies of the warm-up. */
  beginMeasurement(): void {
    this.#latencies = [];
    this.#measuredFromMs = performance.now();
  }

  read(): Reading {
    const sorted = Float64Array.from(this.#latencies).toSorted();
    const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
    const counted = { units: this.units, refused: this.#refused, failure: this.#failure };
    return { ...counted, p50Ms: at(0.5), p99Ms: at(0.99) };
  }

  stop(): void {
    if (this.#arrivals !== undefined) this.#addPending(this.#arrivals.stop());
    this.#isStopped = true;
    for (const connection of this.#connections) connection.close();
  }

  /** Requests without a reply have waited until now: without them the slowest would be missing. */
  #addPending(queued: readonly number[]): void {
    const nowMs = performance.now();
    for (const dueMs of queued) this.#addLatency(dueMs, nowMs);
    for (const { isBusy, dueMs } of this.#connections) if (isBusy) this.#addLatency(dueMs, nowMs);
  }
}

function requestBytes({ scenario, port, key, model }: LoadOptions): Buffer {
  const body = requestBody(scenario, model);
  const head = [
    `POST ${requestPath} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    "content-type: application/json",
    ...(key === "" ? [] : [`authorization: Bearer ${key}`]),
    `content-length: ${body.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}

process.once("disconnect", () => process.exit());
for (;;) {
  const [options] = (await once(process, "message")) as [LoadOptions];
  const load = new Load(options);
  await load.waitBeyond(0);
  await sleep(options.warmUpMs);
  load.beginMeasurement();
  const begun = load.read();
  process.send?.(begun);
  await sleep(options.measuredMs);
  // At least one unit, however slow the machine is.
  await load.waitBeyond(begun.units);
  const { units } = load;
  load.stop();
  process.send?.({ ...load.read(), units });
}
