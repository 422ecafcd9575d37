/**
 * The answers that tests script: whole replies, streams, failures and every way of not answering.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { type Completion, streamChunks, wholeReply } from "./chat.ts";
import { asksForStream, asksForUsage, type Behaviour, type Exchange } from "./exchange.ts";

/** End of a stream: after all of it, or at `cutAfter`. */
export type StreamEnding = "end" | "destroy" | "reset" | "hang";

/** The answer and its delivery. Every member has a harmless default. */
export interface AnswerOptions extends Partial<Completion> {
  /** Response headers besides the vendor's usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Separator of a stream's lines. Default LF. */
  readonly newline?: "\n" | "\r\n";
  /** Whether `[DONE]` ends a stream. Default true. */
  readonly done?: boolean;
  /** Cuts the stream into pieces of that many bytes, wherever they fall. Default: one per event. */
  readonly pieceBytes?: number;
  /** Milliseconds between two pieces. Default 0. */
  readonly gapMs?: number;
  /** Milliseconds before the head. Default 0. */
  readonly delayMs?: number;
  /** Comment lines between events. Default none. */
  readonly comments?: boolean;
  /** After how many events the stream stops. Default: after all. */
  readonly cutAfter?: number;
  /** Whether the first 40 bytes of the next event are sent too. Default not. */
  readonly insideEvent?: boolean;
  /** Ending at that point. Default `end`. */
  readonly ending?: StreamEnding;
  /** An error event that is sent if the stream stops. Default none. */
  readonly errorEvent?: Readonly<Record<string, unknown>>;
}

/** The usage that answers report if the test says nothing. */
export const usageDefault = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } as const;

/** Headers of a vendor that no customer may see. */
export const vendorHeaders: Readonly<Record<string, string>> = {
  "x-request-id": "req_vendor_7f3a",
  "openai-organization": "org-operators-own",
  "openai-processing-ms": "12",
  "openai-version": "2020-10-01",
  "x-ratelimit-limit-requests": "10000",
  "x-ratelimit-remaining-requests": "9999",
  "set-cookie": "__cf_bm=vendor-cookie; path=/; HttpOnly",
  server: "cloudflare",
};

/** Answers in the requested form: one object, or a stream. */
export function answer(options: AnswerOptions = {}): Behaviour {
  return async (exchange) => {
    if (options.delayMs) await sleep(options.delayMs, undefined, { signal: exchange.signal });
    const completion = complete(options, exchange);
    if (asksForStream(exchange.request)) await sendStream(exchange, completion, options);
    else sendWhole(exchange, completion, options);
  };
}

function complete(options: AnswerOptions, { request }: Exchange): Completion {
  return {
    id: options.id ?? "chatcmpl-Simulated1",
    created: options.created ?? 1_760_000_000,
    model: options.model ?? String(request.json?.model),
    text: options.text ?? ["Hello", " there", "!"],
    reasoning: options.reasoning ?? [],
    toolCalls: options.toolCalls ?? [],
    finish: options.finish ?? (options.toolCalls?.length ? "tool_calls" : "stop"),
    usage: options.usage === undefined ? usageDefault : options.usage,
    extra: options.extra ?? {},
  };
}

function sendWhole(exchange: Exchange, completion: Completion, options: AnswerOptions): void {
  sendBody(exchange, {
    status: 200,
    body: Buffer.from(JSON.stringify(wholeReply(completion))),
    headers: { "content-type": "application/json", ...options.headers },
  });
}

/** Answers any request with this body, for replies whose every byte matters. */
export function bytes(
  body: string | Uint8Array,
  { status = 200, headers }: { status?: number; headers?: Readonly<Record<string, string>> } = {},
): Behaviour {
  return (exchange) =>
    sendBody(exchange, {
      status,
      body: Buffer.from(body),
      headers: { "content-type": "application/json", ...headers },
    });
}

interface Body {
  readonly status: number;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Compressed if the request allows it, as the real one does: a forwarded accept-encoding shows. */
function sendBody({ request, response }: Exchange, { status, body, headers }: Body): void {
  const isGzip = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
  const sent = isGzip ? gzipSync(body) : body;
  response.writeHead(status, {
    ...vendorHeaders,
    ...(isGzip && { "content-encoding": "gzip" }),
    "content-length": sent.length,
    ...headers,
  });
  response.end(sent);
}

/** Answers with this event stream, cut into exactly these pieces. */
export function byteStream(
  pieces: ReadonlyArray<string | Uint8Array>,
  options: Pick<AnswerOptions, "ending" | "headers"> = {},
): Behaviour {
  return async (exchange) => {
    beginStream(exchange, options);
    for (const piece of pieces) {
      if (piece.length > 0 && !(await exchange.write(Buffer.from(piece)))) return;
    }
    endStream(exchange, options.ending ?? "end");
  };
}

async function sendStream(
  exchange: Exchange,
  completion: Completion,
  options: AnswerOptions,
): Promise<void> {
  beginStream(exchange, options);
  for (const piece of inPieces(eventsOf(exchange, completion, options), options.pieceBytes)) {
    if (!(await exchange.write(piece))) return;
    if (options.gapMs) await sleep(options.gapMs, undefined, { signal: exchange.signal });
  }
  endStream(exchange, options.ending ?? "end");
}

function beginStream({ response }: Exchange, { headers = {} }: AnswerOptions): void {
  const type = { "content-type": "text/event-stream; charset=utf-8" };
  response.writeHead(200, { ...vendorHeaders, ...type, ...headers });
  response.flushHeaders();
}

function endStream({ response }: Exchange, ending: StreamEnding): void {
  if (ending === "end") response.end();
  else if (ending === "destroy") response.destroy();
  else if (ending === "reset") response.socket?.resetAndDestroy();
}

function eventsOf(exchange: Exchange, completion: Completion, options: AnswerOptions): Buffer[] {
  const newline = options.newline ?? "\n";
  const event = (data: string): string => `data: ${data}${newline}${newline}`;
  const texts = streamChunks(completion, asksForUsage(exchange.request)).map(
    (chunk) =>
      (options.comments ? `: comment${newline}${newline}` : "") + event(JSON.stringify(chunk)),
  );
  if (options.done !== false) texts.push(event("[DONE]"));
  const cut = options.cutAfter ?? texts.length;
  const whole = texts.slice(0, cut);
  if (options.insideEvent) whole.push(texts[cut]?.slice(0, 40) ?? "");
  if (options.errorEvent) whole.push(event(JSON.stringify(options.errorEvent)));
  return whole.map((text) => Buffer.from(text));
}

function inPieces(events: Buffer[], pieceBytes: number | undefined): Buffer[] {
  if (pieceBytes === undefined) return events;
  const all = Buffer.concat(events);
  const pieces: Buffer[] = [];
  for (let at = 0; at < all.length; at += pieceBytes)
    pieces.push(all.subarray(at, at + pieceBytes));
  return pieces;
}

/** Refuses or fails with a status, in the vendor's error body. */
export function failure(
  status: number,
  {
    message = `simulated ${status}`,
    type = "simulated",
    code = null as string | null,
    ...rest
  } = {},
  headers: Readonly<Record<string, string>> = {},
): Behaviour {
  const body = { error: { message, type, param: null, code, ...rest } };
  return bytes(JSON.stringify(body, undefined, 2), { status, headers });
}

/** Answers with a page, as a proxy in front of a vendor does. */
export function html(status = 200): Behaviour {
  return bytes("<!DOCTYPE html><html><body>Bad gateway</body></html>", {
    status,
    headers: { "content-type": "text/html" },
  });
}

/** Never answers: the connection stays open until the gateway leaves. */
export const hang: Behaviour = () => {};

/** Resets the connection instead of answering. */
export const reset: Behaviour = ({ response }) => {
  response.socket?.resetAndDestroy();
};

/** Sends events as fast as the gateway takes them, until it leaves or `bytesMax` are written. */
export function flood(bytesMax: number, eventBytes = 8_192): Behaviour {
  return async (exchange) => {
    beginStream(exchange, {});
    const chunk = { choices: [{ index: 0, delta: { content: "x".repeat(eventBytes) } }] };
    const event = Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
    for (let sent = 0; sent < bytesMax; sent += event.length) {
      if (!(await exchange.write(event))) return;
    }
    endStream(exchange, "end");
  };
}
