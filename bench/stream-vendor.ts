/**
 * Process: a vendor that streams ready chunks, as fast as they are read or at a human pace. Sends
 * its port.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { closing, delta, noStamp, opening } from "./events.ts";
import { scenarios, type StreamShape, vendorModel } from "./scenario.ts";

const shapes = new Map(scenarios.map(({ name, stream }) => [vendorModel(name), stream]));

const server = createServer((request, response) => {
  request.once("data", (first: Buffer) => {
    const model = /"model":"([\w-]+)"/.exec(first.toString("latin1", 0, 200))?.[1] ?? "";
    const shape = shapes.get(model);
    if (shape === undefined) {
      response.writeHead(404).end(`no stream for the model ${model}`);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "req_bench" });
    if (shape.gapMs === undefined) flood(response, shape);
    else pacer.add(response, shape);
  });
});

/**
 * Writes HTTP chunks straight to the socket, because this process must be faster than the
 * contestants. Each event is a separate chunk, as vendors send them. Otherwise the bare proxy would
 * send a group as one chunk.
 */
function flood(response: ServerResponse, { chunks, groupChunks }: StreamShape): void {
  const { socket } = response;
  const group = Buffer.from(chunkOf(delta(noStamp)).repeat(groupChunks));
  response.flushHeaders();
  let sent = 0;
  const more = (): void => {
    while (sent < chunks) {
      sent += groupChunks;
      if (!socket?.write(group)) {
        socket?.once("drain", more);
        return;
      }
    }
    response.end(closing);
  };
  more();
}

function chunkOf(event: string): string {
  return `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`;
}

interface PacedStream {
  readonly response: ServerResponse;
  left: number;
}

/** The most milliseconds between two chunks. */
const gapMs = Math.max(...scenarios.map(({ stream }) => stream?.gapMs ?? 0));

/**
 * One clock for all paced streams. Each stream has its own millisecond of the gap, so they do not
 * come in bursts.
 */
class Pacer {
  readonly #slots = Array.from({ length: gapMs }, () => new Set<PacedStream>());
  readonly #startMs = performance.now();
  #ticks = 0;
  #next = 0;

  constructor() {
    setInterval(() => this.#run(), 1);
  }

  add(response: ServerResponse, { chunks }: StreamShape): void {
    const slot = this.#slots[this.#next++ % gapMs];
    const stream = { response, left: chunks };
    slot?.add(stream);
    response.once("close", () => slot?.delete(stream));
    response.write(opening);
  }

  #run(): void {
    const due = Math.floor(performance.now() - this.#startMs);
    for (; this.#ticks < due; this.#ticks++) {
      for (const stream of this.#slots[this.#ticks % gapMs] ?? []) this.#send(stream);
    }
  }

  #send(stream: PacedStream): void {
    if (stream.left-- > 0) stream.response.write(stamped());
    else stream.response.end(closing);
  }
}

const chunk = Buffer.from(delta(noStamp));
const stampPlace = chunk.indexOf(noStamp);

/** A chunk whose text is the time of sending, so that the load generator knows its delay. */
function stamped(): Buffer {
  const bytes = Buffer.from(chunk);
  const micros = String(process.hrtime.bigint() / 1000n).padStart(noStamp.length, "0");
  bytes.write(micros, stampPlace, "latin1");
  return bytes;
}

const pacer = new Pacer();

process.once("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
