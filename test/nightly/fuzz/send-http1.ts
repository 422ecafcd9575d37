/** Sends a request as bytes over HTTP/1.1, and reads what comes back without trusting it. */
import { connect, type Socket } from "node:net";
import { bytesOf, headOf, type Shot } from "./shot.ts";
import { closeFrame, isAnswered, messageFrames, readFrames } from "./web-socket-frames.ts";

/** Result of a request. */
export interface Outcome {
  /** 0: no reply came. */
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /**
   * `complete`: the reply ended as its head states. `closed`: the server closed first. `left`: the
   * client closed first. `hang`: none of these in time.
   */
  readonly end: "complete" | "closed" | "left" | "hang";
  /** Bytes behind the reply. */
  readonly extra: number;
  readonly ms: number;
  /** The previous request on the same connection; undefined if there is none. */
  readonly after?: Shot | undefined;
}

/** Wait for a reply before the client closes its side, if its request may be incomplete. */
const idleMs = 300;

/** A client that keeps its connection while both sides agree about what was sent. */
export class Http1Client {
  readonly #sockets = new Map<string, Socket>();
  /** The last request of each connection that is kept. */
  readonly #last = new WeakMap<Socket, Shot>();

  /** Never rejects. @param deadlineMs how long everything may take */
  async send(address: string, shot: Shot, deadlineMs: number): Promise<Outcome> {
    const isKept =
      shot.isFramed && shot.cutAt === undefined && shot.then === "read" && !shot.isWebSocket;
    const kept = isKept ? this.#sockets.get(address) : undefined;
    if (isKept) this.#sockets.delete(address);
    const known = kept?.destroyed === false ? kept : undefined;
    const first = await this.#exchange(known ?? open(address), address, shot, deadlineMs);
    // A kept connection may have been closed while the request was under way.
    const isStale = known !== undefined && first.end === "closed" && first.status === 0;
    return isStale ? this.#exchange(open(address), address, shot, deadlineMs) : first;
  }

  /** Closes what is kept. */
  close(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
    this.#sockets.clear();
  }

  #exchange(socket: Socket, address: string, shot: Shot, deadlineMs: number): Promise<Outcome> {
    const startMs = performance.now();
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const reader = new ReplyReader(shot.method === "HEAD");
    const timers: NodeJS.Timeout[] = [];
    // A reply may arrive before its request has been sent whole; the next one would fall into the
    // middle of it.
    let isSent = false;
    const finish = (end: Outcome["end"]): void => {
      for (const timer of timers) clearTimeout(timer);
      socket.removeAllListeners();
      socket.on("error", () => {});
      const reply = reader.reply();
      const isReusable =
        isSent &&
        end === "complete" &&
        reply.extra === 0 &&
        reply.headers["connection"] !== "close" &&
        shot.isFramed &&
        shot.cutAt === undefined &&
        shot.then === "read" &&
        reply.status !== 101;
      if (isReusable && !this.#sockets.has(address)) this.#sockets.set(address, socket);
      else socket.destroy();
      const after = this.#last.get(socket);
      this.#last.set(socket, shot);
      resolve({ ...reply, end, ms: performance.now() - startMs, after });
    };
    const upgraded = Promise.withResolvers<void>();
    let read = 0;
    socket.on("data", (piece: Buffer) => {
      reader.take(piece);
      const { status, body } = reader.reply();
      if (status === 101) {
        upgraded.resolve();
        const frames = readFrames(body.subarray(read)) ?? [];
        read += frames.reduce((sum, { size }) => sum + size, 0);
        if (isAnswered(frames)) socket.write(closeFrame);
      }
      if (reader.isComplete && shot.isFramed) finish("complete");
      else if (reader.length > shot.readMax) finish("left");
    });
    socket.on("error", () => finish(reader.isWholeAtEnd() ? "complete" : "closed"));
    socket.on("close", () => finish(reader.isWholeAtEnd() ? "complete" : "closed"));
    const { readMs } = shot;
    if (readMs < deadlineMs) timers.push(setTimeout(() => finish("left"), readMs));
    timers.push(setTimeout(() => finish(reader.isComplete ? "complete" : "hang"), deadlineMs));
    socket.on("close", () => upgraded.resolve());
    void this.#write(socket, shot, upgraded.promise).then(() => {
      isSent = true;
      if (socket.destroyed) return;
      if (shot.then === "reset") {
        socket.resetAndDestroy();
        finish("left");
      } else if (shot.then === "half-close") socket.end();
      // The server may wait for more bytes; the end of the request settles it.
      else if (!shot.isFramed) timers.push(setTimeout(() => socket.end(), idleMs));
    });
    return promise;
  }

  /** @param upgraded resolves once messages can be sent, and where that will never be */
  async #write(socket: Socket, shot: Shot, upgraded: Promise<void>): Promise<void> {
    // As clients do; bytes in the same packet as the head are a mutation.
    const isLater = shot.isWebSocket && shot.raw === undefined;
    if (isLater) {
      socket.write(headOf(shot));
      await upgraded;
    }
    const all = isLater ? messageFrames(shot) : bytesOf(shot);
    const bytes = shot.cutAt === undefined ? all : all.subarray(0, all.length * shot.cutAt);
    const size = Math.max(1, Math.ceil(bytes.length / shot.pieces));
    for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.write(bytes.subarray(at, at + size), () => resolve());
      // A socket that breaks calls back, too.
      await promise;
    }
  }
}

function open(address: string): Socket {
  const { hostname, port } = new URL(address);
  const socket = connect({
    host: hostname,
    port: Number(port),
    noDelay: true,
    allowHalfOpen: false,
  });
  return socket;
}

/** Reads one reply, interim ones before it left out. */
class ReplyReader {
  readonly #isHead: boolean;
  #bytes: Buffer = Buffer.alloc(0);
  #status = 0;
  #headers: Record<string, string> = {};
  #bodyAt = 0;
  /** End of the reply; undefined if still unknown, or if the reply ends with the connection. */
  #end: number | undefined;

  constructor(isHead: boolean) {
    this.#isHead = isHead;
  }

  get length(): number {
    return this.#bytes.length;
  }

  get isComplete(): boolean {
    return this.#end !== undefined && this.#bytes.length >= this.#end;
  }

  take(piece: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? piece : Buffer.concat([this.#bytes, piece]);
    while (this.#bodyAt === 0) {
      const end = this.#bytes.indexOf("\r\n\r\n");
      if (end < 0) return;
      this.#readHead(this.#bytes.toString("latin1", 0, end));
      if (this.#status >= 200 || this.#status === 101) this.#bodyAt = end + 4;
      else this.#bytes = this.#bytes.subarray(end + 4);
    }
    this.#end ??= this.#findEnd();
  }

  /** Whether the reply is whole where the connection ends. */
  isWholeAtEnd(): boolean {
    const { "content-length": length, "transfer-encoding": coding } = this.#headers;
    const isByClose = this.#bodyAt > 0 && length === undefined && coding === undefined;
    return this.isComplete || isByClose || (this.#isHead && this.#bodyAt > 0);
  }

  reply(): Pick<Outcome, "status" | "headers" | "body" | "extra"> {
    const end = this.#end ?? this.#bytes.length;
    const bytes = this.#bytes.subarray(this.#bodyAt, end);
    const isChunked = this.#headers["transfer-encoding"] !== undefined;
    return {
      status: this.#bodyAt > 0 ? this.#status : 0,
      headers: this.#headers,
      body: isChunked ? unchunk(bytes) : bytes,
      extra: Math.max(0, this.#bytes.length - end),
    };
  }

  #readHead(text: string): void {
    const [line = "", ...lines] = text.split("\r\n");
    this.#status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(line)?.[1] ?? 599);
    this.#headers = {};
    for (const each of lines) {
      const colon = each.indexOf(":");
      this.#headers[each.slice(0, colon).toLowerCase()] = each.slice(colon + 1).trim();
    }
  }

  #findEnd(): number | undefined {
    const status = this.#status;
    const length = this.#headers["content-length"];
    // The parser refuses before the method counts.
    if (this.#isHead && this.#headers["connection"] === "close") return undefined;
    if (this.#isHead || status === 204 || status === 304) return this.#bodyAt;
    if (length !== undefined) return this.#bodyAt + Number(length);
    if (this.#headers["transfer-encoding"] === undefined) return undefined;
    const last = this.#bytes.indexOf("\r\n0\r\n\r\n", this.#bodyAt - 2);
    return last < 0 ? undefined : last + 7;
  }
}

function unchunk(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.toString("latin1", at, Math.max(at, end)), 16);
    if (end < 0 || !(size > 0)) break;
    parts.push(bytes.subarray(end + 2, end + 2 + size));
    at = end + 4 + size;
  }
  return Buffer.concat(parts);
}
