/** Process: the load. Raw sockets and as little parsing as possible: it shares a core with the vendor. */
import { answerWith } from "./answer.ts";
import { Arrivals } from "./arrivals.ts";
import { Connection, type ConnectionOwner } from "./load-connection.ts";
import { formPath, type Scenario } from "./scenario.ts";
import { styles } from "./style.ts";

/** Whom to load with what. */
export interface LoadOptions {
  readonly scenario: Scenario;
  readonly port: number;
  readonly model: string;
  /** The API key; empty: none is sent. */
  readonly key: string;
  /** Open loop: requests per second, due at fixed times whatever the replies do. Default: closed loop, where every
   * connection asks again as soon as it has its reply. */
  readonly rate?: number | undefined;
  /** Whether replies that say "try again" (429, 503) are counted. Default: the first is a failure. */
  readonly mayRefuse?: boolean | undefined;
}

/** What was counted so far. */
export interface LoadCount {
  /** Requests, or chunks. */
  readonly units: number;
  /** Replies that said "try again"; not among the units. */
  readonly refusals: number;
  /** Whether every connection is open and the first reply has come. */
  readonly isRunning: boolean;
  /** The first failure; empty: none. */
  readonly failure: string;
}

/** Milliseconds: of a request, or from the vendor's writing of a chunk to its arrival. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** How many connections are being opened at once: more than the backlog of a listener would be refused or wait. */
const openingMax = 64;

class Load implements ConnectionOwner {
  readonly scenario: Scenario;
  readonly port: number;
  readonly request: Buffer;
  readonly #mayRefuse: boolean;
  readonly #connections: Connection[] = [];
  readonly #arrivals: Arrivals<Connection> | undefined;
  #opened = 0;
  /** Whole replies and their bytes: what a byte stands for while flooding. */
  #replies = 0;
  #replyBytes = 0;
  #receivedBytes = 0;
  #chunks = 0;
  #refusals = 0;
  #failure = "";
  #latencies: number[] = [];
  #measuredFromMs = 0;
  #isStopped = false;

  constructor(options: LoadOptions) {
    this.scenario = options.scenario;
    this.port = options.port;
    this.request = requestBytes(options);
    this.#mayRefuse = options.mayRefuse ?? false;
    this.#arrivals = options.rate === undefined ? undefined : new Arrivals(options.rate);
    for (let i = 0; i < openingMax; i++) this.#openNext();
  }

  #openNext(): void {
    if (this.#connections.length === this.scenario.connections || this.#isStopped) return;
    this.#connections.push(new Connection(this));
  }

  onOpen(connection: Connection): void {
    this.#opened++;
    this.#openNext();
    this.#arrivals?.onFree(connection);
    if (this.#opened < this.scenario.connections) return;
    // Not before: a contestant under load takes seconds to accept two thousand.
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

  onReply(connection: Connection, bytes: number): void {
    this.#replies++;
    this.#replyBytes += bytes;
    if (this.scenario.name !== "paced") this.#addLatency(connection.dueMs, performance.now());
    this.#onFree(connection);
  }

  onRefusal(connection: Connection): boolean {
    if (!this.#mayRefuse) return false;
    this.#refusals++;
    this.#onFree(connection);
    return true;
  }

  onFailure(message: string): void {
    if (!this.#isStopped) this.#failure ||= message;
  }

  #onFree(connection: Connection): void {
    if (this.#isStopped) return;
    if (this.#arrivals === undefined) connection.ask(performance.now());
    else this.#arrivals.onFree(connection);
  }

  /** In an open loop, only requests that were due within the measurement. */
  #addLatency(dueMs: number, nowMs: number): void {
    if (this.#arrivals !== undefined && dueMs < this.#measuredFromMs) return;
    this.#latencies.push(nowMs - dueMs);
  }

  count(): LoadCount {
    const units = Math.round(this.#units());
    const isRunning = this.#opened === this.scenario.connections && units > 0;
    return { units, refusals: this.#refusals, isRunning, failure: this.#failure };
  }

  #units(): number {
    const { name, chunks } = this.scenario;
    if (name === "paced") return this.#chunks;
    if (chunks === undefined) return this.#replies;
    // Counting events would cost more than receiving them: bytes tell as much.
    return this.#replies === 0
      ? 0
      : this.#receivedBytes * ((this.#replies * chunks) / this.#replyBytes);
  }

  /** Forgets the latencies of the time before the measurement. */
  measure(): LoadCount {
    this.#latencies = [];
    this.#measuredFromMs = performance.now();
    return this.count();
  }

  stop(): Latency {
    if (this.#arrivals !== undefined) this.#addPending(this.#arrivals.stop());
    this.#isStopped = true;
    for (const connection of this.#connections) connection.close();
    const sorted = Float64Array.from(this.#latencies).toSorted();
    const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
    return { p50: at(0.5), p99: at(0.99) };
  }

  /** Requests without a reply have waited at least until now: without them the slowest would be missing. */
  #addPending(queued: readonly number[]): void {
    const nowMs = performance.now();
    for (const dueMs of queued) this.#addLatency(dueMs, nowMs);
    for (const { isBusy, dueMs } of this.#connections) if (isBusy) this.#addLatency(dueMs, nowMs);
  }
}

function requestBytes(options: LoadOptions): Buffer {
  const { scenario, port, key } = options;
  const { path, contentType, body } = scenario.isForm ? formBody(options) : jsonBody(options);
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `content-type: ${contentType}`,
    ...(key ? [`authorization: Bearer ${key}`] : []),
    `content-length: ${body.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}

interface RequestBody {
  readonly path: string;
  readonly contentType: string;
  readonly body: Buffer;
}

/** A recording that says nothing of its length, as a part of its own. */
function formBody({ scenario, model }: LoadOptions): RequestBody {
  const boundary = "bench-boundary";
  const part = `--${boundary}\r\ncontent-disposition: form-data; name=`;
  const head = `${part}"model"\r\n\r\n${model}\r\n${part}"file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`;
  const file = Buffer.alloc(scenario.bodyBytes, "a recording ");
  const body = Buffer.concat([Buffer.from(head), file, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  return { path: formPath, contentType: `multipart/form-data; boundary=${boundary}`, body };
}

function jsonBody({ scenario, model }: LoadOptions): RequestBody {
  const content = "x".repeat(Math.max(0, scenario.bodyBytes - 120));
  const style = styles[scenario.style ?? "chat"];
  const asked = style.request(model, content) as Record<string, unknown>;
  const body = JSON.stringify({ ...asked, stream: scenario.stream ? true : undefined });
  return { path: style.path, contentType: "application/json", body: Buffer.from(body) };
}

class Generator {
  #load: Load | undefined;

  begin(options: LoadOptions): void {
    this.#load = new Load(options);
  }

  count(): LoadCount {
    const none = { units: 0, refusals: 0, isRunning: false, failure: "no load runs" };
    return this.#load?.count() ?? none;
  }

  measure(): LoadCount {
    return this.#load?.measure() ?? this.count();
  }

  end(): Latency {
    return this.#load?.stop() ?? { p50: 0, p99: 0 };
  }
}

const generator = new Generator();
answerWith({
  begin: (options: LoadOptions) => generator.begin(options),
  count: () => generator.count(),
  measure: () => generator.measure(),
  end: () => generator.end(),
});
