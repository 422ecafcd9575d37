/** Process: the fast vendor behind both contestants. Answers by the model's name, from ready bytes. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerWith } from "./answer.ts";
import { formPath, pacedChunks, pacedGapMs, type ScenarioName, scenarioOf } from "./scenario.ts";
import { type Style, type StyleName, styleNames, styles } from "./style.ts";

const filler = "The quick brown fox jumps over the lazy dog. ".repeat(18);

const reply = Buffer.from(
  JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: 1_760_000_000,
    model: "vendor-json",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: filler, refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: 250, completion_tokens: 200, total_tokens: 450 },
  }),
);

const noStamp = "0".repeat(16);
const floods = new Map<string, Flood>();

interface Flood {
  readonly chunks: number;
  /** How many chunks leave in one system call. */
  readonly groupChunks: number;
  /** They, each an HTTP chunk of its own, as vendors send them: without the frames, the bare proxy would pass all of
   * them on as one. */
  readonly group: Buffer;
  readonly tail: Buffer;
}

function floodOf(name: ScenarioName, group: number | undefined): Flood {
  const { chunks = 1, style: styleName = "chat", groupChunks: usual = 50 } = scenarioOf(name);
  const groupChunks = group ?? usual;
  const style: Style = styles[styleName];
  const frames = Array.from({ length: groupChunks }, (_, at) => {
    const event = style.delta(noStamp, at + 1);
    return `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`;
  });
  return {
    chunks,
    groupChunks,
    group: Buffer.from(frames.join("")),
    tail: Buffer.from(style.closing),
  };
}

/** The deltas of paced streams by style. Each carries its time of sending in place of the zeros, so that the
 * load generator can tell its delay. */
const pacedDeltas = new Map(
  styleNames.map((name) => {
    const bytes = Buffer.from(styles[name].delta(noStamp));
    return [name, { bytes, stampPlace: bytes.indexOf(noStamp) }];
  }),
);

/** The answer to a form with a recording. */
const text = Buffer.from(JSON.stringify({ text: filler }));

const server = createServer((request, response) => {
  if (request.url === formPath) {
    request.resume().once("end", () => sendJson(response, text));
    return;
  }
  request.once("data", (first: Buffer) => {
    const named = /"model":"vendor-(\w+)"/.exec(first.toString("latin1", 0, 200))?.[1];
    const model = named ?? /\/models\/vendor-(\w+):/.exec(request.url ?? "")?.[1];
    request.once("end", () => respond(model, request, response));
    request.resume();
  });
});

function respond(
  model: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (model === "json" || model === "large") {
    sendJson(response, reply);
    return;
  }
  const flooded = floods.get(model ?? "");
  if (model !== "paced" && flooded === undefined) {
    response.writeHead(404).end(`no model for ${request.url}`);
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "req_bench" });
  if (flooded === undefined) pacer.add(response, styleOf(request.url ?? ""));
  else flood(response, flooded);
}

function sendJson(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": body.length,
    "x-request-id": "req_bench",
  });
  response.end(body);
}

/** The style that an address is of. */
function styleOf(url: string): StyleName {
  return styleNames.find((name) => url.endsWith(styles[name].vendorPath)) ?? "chat";
}

/** Writes ready frames straight to the socket: this process must be faster than the contestants. */
function flood(response: ServerResponse, { chunks, groupChunks, group, tail }: Flood): void {
  const { socket } = response;
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
    response.end(tail);
  };
  more();
}

interface PacedStream {
  readonly style: StyleName;
  sent: number;
}

/** One clock for all paced streams; each has its own millisecond of the gap, so that they do not come
 * in bursts. */
class Pacer {
  readonly #slots: Array<Map<ServerResponse, PacedStream>> = Array.from(
    { length: pacedGapMs },
    () => new Map(),
  );
  readonly #started = performance.now();
  #ticks = 0;
  #next = 0;

  constructor() {
    setInterval(() => this.#run(), 1);
  }

  add(response: ServerResponse, style: StyleName): void {
    const slot = this.#slots[this.#next++ % pacedGapMs];
    slot?.set(response, { style, sent: 0 });
    response.once("close", () => slot?.delete(response));
    response.write(styles[style].opening);
  }

  #run(): void {
    const due = Math.floor(performance.now() - this.#started);
    for (; this.#ticks < due; this.#ticks++) this.#send(this.#slots[this.#ticks % pacedGapMs]);
  }

  #send(slot: Map<ServerResponse, PacedStream> = new Map()): void {
    for (const [response, stream] of slot) {
      if (stream.sent >= pacedChunks) {
        response.end(styles[stream.style].closing);
        slot.delete(response);
        continue;
      }
      response.write(stamped(stream.style));
      stream.sent++;
    }
  }
}

function stamped(style: StyleName): Buffer {
  const delta = pacedDeltas.get(style);
  if (delta === undefined) throw new Error(`no style ${style}`);
  const bytes = Buffer.from(delta.bytes);
  const micros = String(process.hrtime.bigint() / 1000n).padStart(16, "0");
  bytes.write(micros, delta.stampPlace, "latin1");
  return bytes;
}

const pacer = new Pacer();

answerWith({
  /** @param groupChunks how many chunks of a flood leave in one system call; `undefined`: as the scenario has it */
  listen: (groupChunks?: number) => {
    for (const name of ["flood200", "flood", "native"] as const) {
      floods.set(name, floodOf(name, groupChunks));
    }
    return new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  },
});
