/** Process: the load. Raw sockets and as little parsing as possible: it shares a core with the vendor. */
import { connect, type Socket } from "node:net";
import { answerWith } from "./answer.ts";
import { floodChunks, type Scenario } from "./scenario.ts";
import { type Style, styles } from "./style.ts";

/** Whom to load with what. */
export interface LoadOptions {
  readonly scenario: Scenario;
  readonly port: number;
  readonly model: string;
  /** The API key; empty: none is sent. */
  readonly key: string;
}

/** What was counted so far. */
export interface LoadCount {
  /** Requests, or chunks. */
  readonly units: number;
  /** The first failure; empty: none. */
  readonly failure: string;
}

/** Milliseconds: of a request, or from the vendor's writing of a chunk to its arrival. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** How much of the end of a stream is kept: the last event of every style. */
const tailBytes = 4_096;

class Load {
  readonly options: LoadOptions;
  readonly request: Buffer;
  /** Whole replies and their bytes: what a byte stands for while flooding. */
  replies = 0;
  replyBytes = 0;
  receivedBytes = 0;
  chunks = 0;
  failure = "";
  latencies: number[] = [];
  isStopped = false;
  readonly #connections: Connection[] = [];

  constructor(options: LoadOptions) {
    this.options = options;
    this.request = requestBytes(options);
    for (let i = 0; i < options.scenario.connections; i++) {
      this.#connections.push(new Connection(this));
    }
  }

  count(): LoadCount {
    return { units: Math.round(this.#units()), failure: this.failure };
  }

  #units(): number {
    const { name } = this.options.scenario;
    if (name === "paced") return this.chunks;
    if (name !== "flood" && name !== "native") return this.replies;
    // Counting events would cost more than receiving them: bytes tell as much.
    return this.replies === 0
      ? 0
      : this.receivedBytes * ((this.replies * floodChunks) / this.replyBytes);
  }

  stop(): Latency {
    this.isStopped = true;
    for (const connection of this.#connections) connection.close();
    const sorted = Float64Array.from(this.latencies).toSorted();
    const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
    return { p50: at(0.5), p99: at(0.99) };
  }
}

/** One connection that asks, reads the reply and asks again. */
class Connection {
  readonly #load: Load;
  #socket: Socket;
  #asked = 0;
  #size = 0;
  #expected = 0;
  #head = "";
  #tail: Buffer = Buffer.alloc(0);

  constructor(load: Load) {
    this.#load = load;
    this.#socket = this.#open();
  }

  close(): void {
    this.#socket.destroy();
  }

  #open(): Socket {
    const socket = connect(this.#load.options.port, "127.0.0.1");
    socket.setNoDelay(true);
    socket.once("connect", () => this.#ask());
    socket.on("data", (bytes: Buffer) => this.#onData(bytes));
    socket.on("error", (error) => this.#fail(error.message));
    socket.on("close", () => this.#fail("the connection was closed"));
    return socket;
  }

  #fail(message: string): void {
    if (!this.#load.isStopped) this.#load.failure ||= message;
  }

  #ask(): void {
    this.#size = 0;
    this.#expected = 0;
    this.#head = "";
    this.#asked = performance.now();
    this.#socket.write(this.#load.request);
  }

  #onData(bytes: Buffer): void {
    const load = this.#load;
    this.#size += bytes.length;
    load.receivedBytes += bytes.length;
    if (this.#expected === 0) this.#readHead(bytes);
    if (load.options.scenario.stream) this.#onStreamData(bytes);
    else if (this.#size === this.#expected) this.#onReply();
  }

  #readHead(bytes: Buffer): void {
    this.#head += bytes.toString("latin1");
    const end = this.#head.indexOf("\r\n\r\n");
    if (end < 0) return;
    if (!this.#head.startsWith("HTTP/1.1 200")) this.#fail(this.#head.slice(0, 600));
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#head.slice(0, end))?.[1];
    this.#expected = length === undefined ? -1 : end + 4 + Number(length);
  }

  #onStreamData(bytes: Buffer): void {
    if (this.#load.options.scenario.name === "paced") this.#readStamps(bytes);
    this.#tail =
      bytes.length >= tailBytes
        ? bytes.subarray(-tailBytes)
        : Buffer.concat([this.#tail, bytes]).subarray(-tailBytes);
    if (this.#tail.subarray(-7).toString("latin1").endsWith("0\r\n\r\n")) {
      const { terminal } = styleOf(this.#load.options.scenario);
      if (!this.#tail.includes(terminal)) this.#fail(`a stream ended without ${terminal}`);
      this.#onReply();
    }
  }

  #readStamps(bytes: Buffer): void {
    const now = Number(process.hrtime.bigint() / 1000n);
    const { mark } = styleOf(this.#load.options.scenario);
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 20)) {
      const sent = Number(bytes.toString("latin1", at + mark.length, at + mark.length + 16));
      if (!(sent > 0)) continue;
      this.#load.chunks++;
      this.#load.latencies.push((now - sent) / 1000);
    }
  }

  #onReply(): void {
    const load = this.#load;
    load.replies++;
    load.replyBytes += this.#size;
    if (load.options.scenario.name !== "paced")
      load.latencies.push(performance.now() - this.#asked);
    if (!load.isStopped) this.#ask();
  }
}

function styleOf({ style = "chat" }: Scenario): Style {
  return styles[style];
}

function requestBytes({ scenario, port, model, key }: LoadOptions): Buffer {
  const content = "x".repeat(Math.max(0, scenario.bodyBytes - 120));
  const style = styleOf(scenario);
  const asked = style.request(model, content) as Record<string, unknown>;
  const body = JSON.stringify({ ...asked, stream: scenario.stream ? true : undefined });
  const head = [
    `POST ${style.path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    "content-type: application/json",
    ...(key ? [`authorization: Bearer ${key}`] : []),
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}

class Generator {
  #load: Load | undefined;

  begin(options: LoadOptions): void {
    this.#load = new Load(options);
  }

  count(): LoadCount {
    return this.#load?.count() ?? { units: 0, failure: "no load runs" };
  }

  /** Forgets the latencies of the time before the measurement. */
  measure(): LoadCount {
    if (this.#load) this.#load.latencies = [];
    return this.count();
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
