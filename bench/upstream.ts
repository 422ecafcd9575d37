/** Process: the fast vendor behind both contestants. Answers by the model's name, from ready bytes. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerWith } from "./answer.ts";
import { floodChunks, pacedChunks, pacedGapMs } from "./scenario.ts";

/** How many chunks leave in one system call while flooding. Each is an HTTP chunk of its own, as
 * vendors send them: without the frames, the bare proxy would pass 64 chunks on as one. */
const floodGroup = 50;

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

function event(delta: unknown, rest: Record<string, unknown> = {}): string {
  const chunk = {
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1_760_000_000,
    model: "vendor-flood",
    service_tier: "default",
    system_fingerprint: "fp_bench",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
    usage: null,
    ...rest,
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

const finish = { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] };
const usage = { prompt_tokens: 250, completion_tokens: 2000, total_tokens: 2250 };
const tail = Buffer.from(
  `${event({}, finish)}${event({}, { choices: [], usage })}data: [DONE]\n\n`,
);
const template = Buffer.from(event({ content: "0000000000000000" }));
const frame = `${template.length.toString(16)}\r\n${template.toString()}\r\n`;
const group = Buffer.from(frame.repeat(floodGroup));

/** A paced chunk carries its time of sending, so that the load generator can tell its delay. */
const stampPlace = template.indexOf('0"}') - 15;

const server = createServer((request, response) => {
  request.once("data", (first: Buffer) => {
    const model = /"model":"vendor-(\w+)"/.exec(first.toString("latin1", 0, 200))?.[1];
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
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": reply.length,
      "x-request-id": "req_bench",
    });
    response.end(reply);
  } else if (model === "flood" || model === "paced") {
    response.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "req_bench" });
    if (model === "flood") flood(response);
    else pacer.add(response);
  } else {
    response.writeHead(404).end(`no model for ${request.url}`);
  }
}

/** Writes ready frames straight to the socket: this process must be faster than the contestants. */
function flood(response: ServerResponse): void {
  const { socket } = response;
  response.flushHeaders();
  let sent = 0;
  const more = (): void => {
    while (sent < floodChunks) {
      sent += floodGroup;
      if (!socket?.write(group)) {
        socket?.once("drain", more);
        return;
      }
    }
    response.end(tail);
  };
  more();
}

/** One clock for all paced streams; each has its own millisecond of the gap, so that they do not come
 * in bursts. */
class Pacer {
  readonly #slots: Array<Map<ServerResponse, number>> = Array.from(
    { length: pacedGapMs },
    () => new Map(),
  );
  readonly #started = performance.now();
  #ticks = 0;
  #next = 0;

  constructor() {
    setInterval(() => this.#run(), 1);
  }

  add(response: ServerResponse): void {
    const slot = this.#slots[this.#next++ % pacedGapMs];
    slot?.set(response, 0);
    response.once("close", () => slot?.delete(response));
    response.write(event({ role: "assistant", content: "" }));
  }

  #run(): void {
    const due = Math.floor(performance.now() - this.#started);
    for (; this.#ticks < due; this.#ticks++) this.#send(this.#slots[this.#ticks % pacedGapMs]);
  }

  #send(slot: Map<ServerResponse, number> = new Map()): void {
    for (const [response, sent] of slot) {
      if (sent >= pacedChunks) {
        response.end(tail);
        slot.delete(response);
        continue;
      }
      response.write(stamped());
      slot.set(response, sent + 1);
    }
  }
}

function stamped(): Buffer {
  const bytes = Buffer.from(template);
  bytes.write(String(process.hrtime.bigint() / 1000n).padStart(16, "0"), stampPlace, "latin1");
  return bytes;
}

const pacer = new Pacer();

answerWith({
  listen: () =>
    new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    }),
});
