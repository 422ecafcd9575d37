/** One connection of the load: sends ready bytes and finds the end of the reply with as little parsing as possible. */
import { connect, type Socket } from "node:net";
import type { Scenario } from "./scenario.ts";
import { type Style, styles } from "./style.ts";

/** The load that a connection belongs to. */
export interface ConnectionOwner {
  readonly scenario: Scenario;
  readonly port: number;
  /** The whole request, its head included. */
  readonly request: Buffer;
  /** The connection is open. */
  onOpen(connection: Connection): void;
  onBytes(count: number): void;
  /** A chunk of a paced stream arrived, so many milliseconds after the vendor wrote it. */
  onChunk(delayMs: number): void;
  /** A reply is complete. The connection is free from now on. */
  onReply(connection: Connection, bytes: number): void;
  /** A reply that says "try again" is complete. Returns whether that is no failure. */
  onRefusal(connection: Connection): boolean;
  onFailure(message: string): void;
}

/** How much of the end of a stream is kept: the last event of every style. */
const tailBytes = 4_096;

/** One connection. */
export class Connection {
  readonly #owner: ConnectionOwner;
  readonly #style: Style;
  readonly #socket: Socket;
  readonly #isPaced: boolean;
  /** When the request was due, by `performance.now()`: latency counts from here. */
  dueMs = 0;
  isBusy = false;
  #size = 0;
  #expected = 0;
  #head = "";
  #isRefused = false;
  #tail: Buffer = Buffer.alloc(0);

  constructor(owner: ConnectionOwner) {
    this.#owner = owner;
    this.#style = styles[owner.scenario.style ?? "chat"];
    this.#isPaced = owner.scenario.name === "paced";
    this.#socket = connect(owner.port, "127.0.0.1");
    this.#socket.setNoDelay(true);
    this.#socket.once("connect", () => owner.onOpen(this));
    this.#socket.on("data", (bytes: Buffer) => this.#onData(bytes));
    this.#socket.on("error", (error) => owner.onFailure(error.message));
    this.#socket.on("close", () => owner.onFailure("the connection was closed"));
  }

  /** Sends the request. */
  ask(dueMs: number): void {
    this.dueMs = dueMs;
    this.isBusy = true;
    this.#size = 0;
    this.#expected = 0;
    this.#head = "";
    this.#socket.write(this.#owner.request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #onData(bytes: Buffer): void {
    this.#size += bytes.length;
    this.#owner.onBytes(bytes.length);
    if (this.#expected === 0) this.#readHead(bytes);
    if (this.#size === this.#expected) this.#onReply();
    else if (this.#owner.scenario.stream) this.#onStreamData(bytes);
  }

  #readHead(bytes: Buffer): void {
    this.#head += bytes.toString("latin1");
    const end = this.#head.indexOf("\r\n\r\n");
    if (end < 0) return;
    this.#isRefused = /^HTTP\/1\.1 (?:429|503)/.test(this.#head);
    if (!this.#isRefused && !this.#head.startsWith("HTTP/1.1 200")) this.#fail();
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#head.slice(0, end))?.[1];
    this.#expected = length === undefined ? -1 : end + 4 + Number(length);
  }

  #onStreamData(bytes: Buffer): void {
    if (this.#isPaced) this.#readStamps(bytes);
    this.#tail =
      bytes.length >= tailBytes
        ? bytes.subarray(-tailBytes)
        : Buffer.concat([this.#tail, bytes]).subarray(-tailBytes);
    if (this.#tail.subarray(-7).toString("latin1").endsWith("0\r\n\r\n")) {
      const { terminal } = this.#style;
      if (!this.#tail.includes(terminal)) {
        this.#owner.onFailure(`a stream ended without ${terminal}`);
      }
      this.#onReply();
    }
  }

  #readStamps(bytes: Buffer): void {
    const now = Number(process.hrtime.bigint() / 1000n);
    const { mark } = this.#style;
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 20)) {
      const sent = Number(bytes.toString("latin1", at + mark.length, at + mark.length + 16));
      if (sent > 0) this.#owner.onChunk((now - sent) / 1000);
    }
  }

  #onReply(): void {
    this.isBusy = false;
    if (!this.#isRefused) this.#owner.onReply(this, this.#size);
    else if (!this.#owner.onRefusal(this)) this.#fail();
  }

  #fail(): void {
    this.#owner.onFailure(this.#head.slice(0, 600));
  }
}
