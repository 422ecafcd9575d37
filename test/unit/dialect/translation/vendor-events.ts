/** Streams of vendors, event by event. */
import type { TextDialect } from "../../../../src/dialect/dialect.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";
import { strictChat } from "../../../support/upstream/chat-strict.ts";
import type { ChatBody, Exchange } from "../../../support/upstream/exchange.ts";
import { strictGemini } from "../../../support/upstream/gemini-strict.ts";
import { strictMessages } from "../../../support/upstream/messages-strict.ts";
import { strictResponses } from "../../../support/upstream/responses-strict.ts";
import type { StrictStyle } from "../../../support/upstream/strict.ts";
import type { Caller, Vendor } from "./translation.ts";

/** The dialects of clients. */
export const dialects: Readonly<Record<Caller, TextDialect>> = {
  chat: chatCompletions,
  responses,
  messages,
};

const styles: Readonly<Record<Vendor, () => StrictStyle>> = {
  chat: () => strictChat(),
  responses: strictResponses,
  messages: strictMessages,
  gemini: strictGemini,
};

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const names = ["get_weather", "get_time"] as const;

/** A request in the words of each style: everything that a reply may have is turned on. */
const requests: Readonly<Record<Vendor, (text: string) => Record<string, unknown>>> = {
  chat: (text) => ({
    model: "vendor-model",
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content: text }],
    tools: names.map((name) => ({ type: "function", function: { name, parameters: schema } })),
  }),
  responses: (text) => ({
    model: "vendor-model",
    stream: true,
    input: text,
    reasoning: { summary: "auto" },
    tools: names.map((name) => ({ type: "function", name, parameters: schema })),
  }),
  messages: (text) => ({
    model: "vendor-model",
    max_tokens: 4_000,
    stream: true,
    thinking: { type: "enabled", budget_tokens: 1_024 },
    messages: [{ role: "user", content: text }],
    tools: names.map((name) => ({ name, input_schema: schema })),
  }),
  gemini: (text) => ({
    contents: [{ role: "user", parts: [{ text }] }],
    generationConfig: { thinkingConfig: { includeThoughts: true } },
    tools: [{ functionDeclarations: names.map((name) => ({ name, parameters: schema })) }],
  }),
};

/** Returns the stream of a vendor for `text`, event by event. */
export async function vendorEvents(vendor: Vendor, text: string): Promise<string[]> {
  const json = requests[vendor](text) as ChatBody;
  const pieces: Buffer[] = [];
  const request = {
    method: "POST",
    url: vendor === "gemini" ? "/v1beta/models/vendor-model:streamGenerateContent?alt=sse" : "/",
    headers: {},
    body: Buffer.from(JSON.stringify(json)),
    json,
  };
  const exchange = {
    request,
    signal: new AbortController().signal,
    response: { writeHead() {}, flushHeaders() {}, end() {}, destroy() {} },
    write: (piece: Uint8Array) => Promise.resolve(pieces.push(Buffer.from(piece)) > 0),
  };
  await styles[vendor]().answer(exchange as unknown as Exchange);
  return Buffer.concat(pieces)
    .toString()
    .split(/(?<=\n\n)/);
}
