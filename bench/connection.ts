/**
 * One connection of the load: sends ready bytes and finds the end of the reply with as little
 * parsing as possible.
 */
import { connect, type Socket } from "node:net";
import { terminal, textMark } from "./events.ts";

/** The load that a connection belongs to. */
export interface ConnectionOwner {
  readonly port: number;
  /** The whole request, with its head. */
  readonly request: Buffer;
  readonly isPaced: boolean;
  /** The connection is open. */
  onOpen(connection: Connection): void;
  onBytes(count: number): void;
  /** A chunk of a paced stream arrived. */
  onChunk(delayMs: number): void;
  /** A reply is complete, and the connection is free. */
  onReply(
    connection: Connection,
    reply: { readonly bytes: number; readonly isRefused: boolean },
  ): void;
  onFailure(message: string): void;
}

/** Stored bytes of a stream's end, which contain its last event. */
const tailBytes = 1_024;

/** One connection. */
export class Connection {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  /** When the request was due, by `performance.now()`: latency counts from here. */
  dueMs = 0;
  isBusy = false;
  #size = 0;
  /** The size of the whole reply; 0: unknown, -1: it ends with a chunk of length 0. */
  #expected = 0;
  #head = "";
  #tail: Buffer = Buffer.alloc(0);

  constructor(owner: ConnectionOwner) {
    this.#owner = owner;
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
    else if (this.#expected < 0) this.#onStreamData(bytes);
  }

  #readHead(bytes: Buffer): void {
    this.#head += bytes.toString("latin1");
    const end = this.#head.indexOf("\r\n\r\n");
    if (end < 0) return;
    if (!/^HTTP\/1\.1 (?:200|429|503)/.test(this.#head)) {
      this.#owner.onFailure(this.#head.slice(0, 600));
    }
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#head.slice(0, end))?.[1];
    this.#expected = length === undefined ? -1 : end + 4 + Number(length);
  }

  #onStreamData(bytes: Buffer): void {
    if (this.#owner.isPaced) this.#readStamps(bytes);
    this.#tail =
      bytes.length >= tailBytes
        ? bytes.subarray(-tailBytes)
        : Buffer.concat([this.#tail, bytes]).subarray(-tailBytes);
    if (!this.#tail.subarray(-7).toString("latin1").endsWith("0\r\n\r\n")) return;
    if (!this.#tail.includes(terminal)) this.#owner.onFailure(`a stream ended without ${terminal}`);
    this.#onReply();
  }

  #readStamps(bytes: Buffer): void {
    const now = Number(process.hrtime.bigint() / 1000n);
    for (let at = bytes.indexOf(textMark); at >= 0; at = bytes.indexOf(textMark, at + 20)) {
      const start = at + textMark.length;
      const sent = Number(bytes.toString("latin1", start, start + 16));
      if (sent > 0) this.#owner.onChunk((now - sent) / 1000);
    }
  }

  #onReply(): void {
    this.isBusy = false;
    const isRefused = !this.#head.startsWith("HTTP/1.1 200");
    this.#owner.onReply(this, { bytes: this.#size, isRefused });
  }
}
