/**
 * Requests and replies on their way from one style into another, as the gateway sends them: for the
 * tests that hold the table of the wire facts (§3), row by row and direction by direction.
 */
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import type { Generation } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorQuirks } from "../../../../src/core/vendor-quirks.ts";
import type { ReplyOptions, VendorCodec } from "../../../../src/dialect/codec.ts";
import type { TextDialect } from "../../../../src/dialect/dialect.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { gemini } from "../../../../src/dialect/gemini/dialect.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";
import { ToolRestorer } from "../../../../src/dialect/tools/tool-restorer.ts";
import {
  asReported,
  type ChargedUsage,
  type ReplyWatcher,
  TranslatedStream,
  type Translation,
  translateReply,
  translateToStream,
} from "../../../../src/dialect/translate.ts";
import { GatewayError } from "../../../../src/core/errors.ts";
import { withMemberName } from "../../../../src/calls/adapters/translation.ts";

/** A style that clients speak. */
export type Caller = "chat" | "responses" | "messages";
/** A style that vendors speak. */
export type Vendor = Caller | "gemini";
/** JSON, written out. */
export type Json = Readonly<Record<string, unknown>>;

const callers: Readonly<Record<Caller, TextDialect>> = {
  chat: chatCompletions,
  responses,
  messages,
};
const vendors: Readonly<Record<Vendor, VendorCodec>> = { ...callers, gemini };
const ids: Readonly<Record<Caller, Dialect>> = {
  chat: Dialect.CHAT_COMPLETIONS,
  responses: Dialect.RESPONSES,
  messages: Dialect.MESSAGES,
};
const models: Readonly<Record<Vendor, string>> = {
  chat: "vendor",
  responses: "vendor",
  messages: "vendor",
  gemini: "gemini-3-flash",
};

/** All ways between styles that differ. */
export const directions = (["chat", "responses", "messages"] as const).flatMap((from) =>
  (["chat", "responses", "messages", "gemini"] as const)
    .filter((to) => to !== from)
    .map((to) => ({ from, to })),
);

const bodies: Readonly<Record<Caller, Json>> = {
  chat: { model: "m", messages: [{ role: "user", content: "hi" }] },
  responses: { model: "m", input: "hi" },
  messages: { model: "m", max_tokens: 5_000, messages: [{ role: "user", content: "hi" }] },
};

/** Direction of a request. */
export interface Way {
  readonly from: Caller;
  readonly to: Vendor;
  /** The vendor's name of the model. Default: a name without a series, or Gemini 3. */
  readonly model?: string;
  /** Deviations of the vendor from its style. Default: none. */
  readonly quirks?: VendorQuirks;
}

/** The vendor's view of a request. */
export interface Sent {
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it
  readonly body: any;
  /** The body as it is sent. */
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In the caller's words. */
  readonly dropped: readonly string[];
}

/**
 * Decodes a client's request: a question, with `members` replacing its own; or the text of a whole
 * body.
 */
export function decode(from: Caller, members: Json | string): Generation {
  const body = bytesOf(typeof members === "string" ? members : { ...bodies[from], ...members });
  return callers[from].decodeRequest(body, { platformAliases: false });
}

/** Sends a request. @throws GatewayError */
export function send(way: Way, members: Json | string): Sent {
  return sendGeneration(way, decode(way.from, members));
}

/** Sends a request that has been read. @throws GatewayError */
export function sendGeneration({ from, to, model, quirks }: Way, generation: Generation): Sent {
  const { memberNames } = callers[from];
  try {
    const { body, headers, dropped } = vendors[to].encodeRequest(generation, {
      model: model ?? models[to],
      stream: false,
      maxOutputTokens: 8_000,
      sourceDialect: ids[from],
      quirks,
    });
    const names = dropped.map((name) => memberNames[name] ?? name);
    const text = body.toString();
    return { body: JSON.parse(text), text, headers, dropped: names };
  } catch (error) {
    throw withMemberName(memberNames, error);
  }
}

/** Returns the error for a refused request. */
export function refusal(way: Way, members: Json): GatewayError {
  try {
    send(way, members);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was accepted");
}

/** One entry of the table in one direction. */
export interface Crossing extends Way {
  /** Its special feature. */
  readonly with?: string;
  /** Members of the request. */
  readonly given: Json;
  /** The vendor's part of the body. */
  readonly sent?: Json;
  /** Paths that it must not have. */
  readonly without?: readonly string[];
  /** Members reported as dropped. Default: none. */
  readonly dropped?: readonly string[];
  /** A part of the refusal's text: in place of all the above. */
  readonly refused?: RegExp;
}

/** Makes a test of each. @param row the entry's name in the table */
export function crossings(row: string, all: readonly Crossing[]): void {
  describe(`wire §3, ${row} (R-TXT-2)`, () => {
    for (const each of all) {
      const { from, to, given, sent = {}, without = [], dropped = [], refused } = each;
      it(`${row} ${refused === undefined ? "goes" : "is refused"} from ${from} to ${to}${each.with ? `: ${each.with}` : ""}`, () => {
        if (refused !== undefined) {
          const error = refusal(each, given);
          expect(error.status).toBe(400);
          expect(`${error.param}: ${error.message}`).toMatch(refused);
          return;
        }
        const got = send(each, given);
        expect(got.body).toMatchObject(sent);
        for (const path of without) expect(got.body).not.toHaveProperty(path);
        expect(got.dropped).toEqual(dropped);
      });
    }
  });
}

/** All ways back between styles that differ. */
export const waysBack: readonly WayBack[] = directions.map(({ from, to }) => ({
  from: to,
  to: from,
}));

/** The client's view of a reply. */
export interface Got {
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it
  readonly body: any;
  /** The data of a stream's events that are JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it
  readonly events: readonly any[];
  /** Members of the reply that were dropped. */
  readonly dropped: readonly string[];
}

/** Direction of a reply. */
export interface WayBack {
  readonly from: Vendor;
  readonly to: Caller;
}

/** The request of a reply, and its observers. */
export interface Asked {
  /** Members of the request. */
  readonly request?: Json;
  readonly watcher?: ReplyWatcher;
  /** Decides the usage that is charged. Default: what the vendor reports. */
  readonly charged?: ChargedUsage;
}

function translation({ from, to }: WayBack, asked: Asked, lost: string[]): Translation {
  const generation = decode(to, asked.request ?? {});
  const options: ReplyOptions = {
    model: "m",
    callId: "0123456789abcdef0123456789abcdef",
    created: 1_700_000_000,
    now: () => 1_700_000_009,
    inputTokens: 9,
    generation,
    onDropped: (name) => lost.push(name),
  };
  const tools = new ToolRestorer(generation.conversation?.tools ?? []);
  const charged = asked.charged ?? asReported;
  const { watcher } = asked;
  return { vendor: vendors[from], caller: callers[to], options, tools, charged, watcher };
}

/**
 * A whole reply, as the client gets it. @param reply its bytes are made here, unless it is a text
 */
export function answer(way: WayBack, reply: Json | string, asked: Asked = {}): Got {
  const dropped: string[] = [];
  const bytes = bytesOf(reply);
  const { body } = translateReply(bytes, translation(way, asked, dropped));
  const text = body.toString();
  return { text, body: JSON.parse(text), events: [], dropped };
}

function bytesOf(body: Json | string): Buffer {
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

/** The same for a client that asked for a stream. */
export function answerStreamed(way: WayBack, reply: Json | string, asked: Asked = {}): Got {
  const dropped: string[] = [];
  const bytes = bytesOf(reply);
  return streamed(translateToStream(bytes, translation(way, asked, dropped)).body, dropped);
}

/** A streamed reply, as the client gets it: the vendor's events, each as its data. */
export function stream(way: WayBack, events: readonly unknown[], asked: Asked = {}): Got {
  const dropped: string[] = [];
  const translated = new TranslatedStream(translation(way, asked, dropped));
  const out = events.map((data) => translated.push([Buffer.from(frame(data))]));
  return streamed(Buffer.concat([...out, translated.end()]), dropped);
}

function streamed(body: Buffer, dropped: readonly string[]): Got {
  const text = body.toString();
  const data = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
  return { text, body: undefined, events: data, dropped };
}

function frame(data: unknown): string {
  if (typeof data === "string") return `data: ${data}\n\n`;
  const { type } = data as { type?: unknown };
  const json = JSON.stringify(data);
  return typeof type === "string" ? `event: ${type}\ndata: ${json}\n\n` : `data: ${json}\n\n`;
}
