/**
 * Passes vendors' replies through the dialects, as the gateway's pipeline does: relayed or
 * translated.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { TextDialect } from "../../../src/dialect/dialect.ts";
import { textDialects, vendorDialects } from "../../../src/dialect/index.ts";
import { withStops } from "../../../src/dialect/stop-sequences.ts";
import { ToolRestorer } from "../../../src/dialect/tools/tool-restorer.ts";
import {
  asReported,
  TranslatedStream,
  type Translation,
  translateReply,
  translateToStream,
} from "../../../src/dialect/translate.ts";
import { type CallerStyle, callerStyles } from "./caller-reading.ts";
import { toolNames } from "./conversation.ts";
import { type VendorStyle, vendorStyles } from "./vendor-reply.ts";

/** Forms of the vendor's reply and of the caller's request. */
export const forms = [
  "stream",
  "whole",
  "whole in place of a stream",
  "stream in place of a whole",
] as const;

/** Path of a reply. */
export interface Way {
  readonly vendor: VendorStyle;
  readonly caller: CallerStyle;
  readonly form: (typeof forms)[number];
}

/** All ways between styles. */
export const ways: readonly Way[] = vendorStyles.flatMap((vendor) =>
  callerStyles.flatMap((caller) => forms.map((form) => ({ vendor, caller, form }))),
);

/** Whether the vendor sends events. */
export function isEvents({ form }: Way): boolean {
  return form === "stream" || form === "stream in place of a whole";
}

/** Whether the caller asked for a stream. */
export function isStreamed({ form }: Way): boolean {
  return form === "stream" || form === "whole in place of a stream";
}

/**
 * Whether the caller gets the vendor's bytes, as it speaks its style. What comes in another form
 * is translated.
 */
export function isRelayed({ vendor, caller, form }: Way): boolean {
  return vendor === caller && (form === "stream" || form === "whole");
}

/** A reply as the caller gets it, and what is charged. */
export interface Passed {
  readonly body: string;
  /** The vendor's figures. */
  readonly usage: Usage | undefined;
  /** Whether the reply came to its end. */
  readonly isFinished: boolean;
  readonly textBytes: number;
  /** Bytes of text that came after the figures: they would be charged besides. */
  readonly uncountedTextBytes: number;
}

const dialectIds: Readonly<Record<VendorStyle, Dialect>> = {
  chat: Dialect.CHAT_COMPLETIONS,
  responses: Dialect.RESPONSES,
  messages: Dialect.MESSAGES,
  gemini: Dialect.GEMINI,
};

function callerDialect(caller: CallerStyle): TextDialect {
  const dialect = textDialects.get(dialectIds[caller]);
  if (dialect === undefined) throw new Error("unreachable");
  return dialect;
}

const parameters = { type: "object", properties: {}, additionalProperties: true };
const chatTools = [
  ...toolNames.functions.map((name) => ({ type: "function", function: { name, parameters } })),
  { type: "custom", custom: { name: toolNames.custom } },
];
const responsesTools = [
  ...toolNames.functions.map((name) => ({ type: "function", name, parameters })),
  { type: "custom", name: toolNames.custom },
];
const messages = [{ role: "user", content: "hi" }];

/** The caller's request. */
export const requests: Readonly<Record<CallerStyle, Readonly<Record<string, unknown>>>> = {
  chat: {
    model: "m",
    messages,
    tools: chatTools,
    stream: true,
    stream_options: { include_usage: true },
  },
  responses: { model: "m", input: "hi", tools: responsesTools, stream: true },
  messages: {
    model: "m",
    max_tokens: 5_000,
    messages,
    tools: toolNames.functions.map((name) => ({ name, input_schema: parameters })),
    stream: true,
  },
};

const generations = new Map<CallerStyle, Generation>(
  callerStyles.map((caller) => [
    caller,
    callerDialect(caller).decodeRequest(Buffer.from(JSON.stringify(requests[caller])), {
      platformAliases: false,
    }),
  ]),
);

function translation({ vendor, caller }: Way): Translation {
  const generation = generations.get(caller);
  if (generation === undefined) throw new Error("unreachable");
  return {
    vendor: withStops(vendorDialects[dialectIds[vendor] as keyof typeof vendorDialects], {
      stop: [],
      isReadToEnd: false,
    }),
    caller: callerDialect(caller),
    options: {
      model: "vendor-model",
      callId: "0123456789abcdef0123456789abcdef",
      created: 1_700_000_000,
      now: () => 1_700_000_009,
      inputTokens: 9,
      generation,
      onDropped: () => {},
    },
    tools: new ToolRestorer(generation.conversation?.tools ?? []),
    charged: asReported,
  };
}

/**
 * Passes a reply.
 *
 * @param sent what the vendor sends
 * @param pieceBytes the size of the pieces that a stream arrives in
 */
export function pass(way: Way, sent: string, pieceBytes: number): Passed {
  const bytes = Buffer.from(sent);
  if (way.form !== "stream") return passWhole(way, bytes);
  const stream = isRelayed(way)
    ? callerDialect(way.caller).relayStream({
        publicModel: "vendor-model",
        hideUsage: false,
        choices: 1,
      })
    : new TranslatedStream(translation(way));
  const out: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    // A fresh copy for each piece, as sockets deliver them. What was returned may be overwritten.
    const piece = Buffer.from(bytes.subarray(at, at + pieceBytes));
    out.push(Buffer.from(stream.push([piece])));
  }
  out.push(Buffer.from(stream.end()));
  const { usage, finished: isFinished, textBytes, uncountedTextBytes = 0 } = stream;
  const body = Buffer.concat(out).toString();
  return { body, usage, isFinished, textBytes, uncountedTextBytes };
}

function passWhole(way: Way, bytes: Buffer): Passed {
  const read = isRelayed(way)
    ? callerDialect(way.caller).relayReply(bytes, {
        publicModel: "vendor-model",
        hideUsage: false,
        choices: 1,
      })
    : isStreamed(way)
      ? translateToStream(bytes, translation(way))
      : translateReply(bytes, translation(way));
  const { body, usage, textBytes } = read;
  return { body: body.toString(), usage, isFinished: true, textBytes, uncountedTextBytes: 0 };
}
