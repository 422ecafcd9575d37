/** Requests in each style as raw JSON, for features that no library has. */
import type { ClientStyle } from "./clients/client.ts";
import { localTools, placeSchema } from "./clients/tools.ts";

/** JSON of a request or a reply. */
export type Json = Record<string, unknown>;

/** Members for a request in each of the styles. */
export type PerStyle = Readonly<Partial<Record<ClientStyle, Json>>>;

const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;

/** An answer. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Json;
}

/** Posts a body in a style. */
export async function post(
  style: ClientStyle,
  { origin, key }: { readonly origin: string; readonly key: string },
  body: Json,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  const reply = await fetch(`${origin}${paths[style]}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...(style === "messages" && { "anthropic-version": "2023-06-01" }),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return { status: reply.status, headers: reply.headers, json: (await reply.json()) as Json };
}

const bodies: Readonly<Record<ClientStyle, (model: string, turns: Json[]) => Json>> = {
  chat: (model, messages) => ({ model, messages }),
  responses: (model, input) => ({ model, input, store: false }),
  messages: (model, messages) => ({ model, max_tokens: 2_000, messages }),
};

/** A request of one user text, with members of the style's own. */
export function bodyOf(style: ClientStyle, model: string, text: string, more: PerStyle = {}): Json {
  return { ...bodies[style](model, [{ role: "user", content: text }]), ...more[style] };
}

/** The tools, as each style writes them. */
export const toolsOf: Readonly<Record<ClientStyle, Json>> = {
  chat: {
    tools: localTools.map(({ name }) => ({
      type: "function",
      function: { name, parameters: placeSchema },
    })),
  },
  responses: {
    tools: localTools.map(({ name }) => ({ type: "function", name, parameters: placeSchema })),
  },
  messages: { tools: localTools.map(({ name }) => ({ name, input_schema: placeSchema })) },
};

/** The objects in what may be an array of them. */
export function list(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

/** An object, or an empty one. */
function object(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function message({ json }: Reply): Json {
  return object(list(json["choices"])[0]?.["message"]);
}

function join(texts: readonly unknown[]): string {
  return texts.filter((text) => typeof text === "string").join("");
}

const texts: Readonly<Record<ClientStyle, (reply: Reply) => string>> = {
  chat: (reply) => join([message(reply)["content"]]),
  responses: ({ json }) =>
    join(list(json["output"]).flatMap((item) => list(item["content"]).map(({ text }) => text))),
  messages: ({ json }) => join(list(json["content"]).map(({ text }) => text)),
};

/** The text of a reply. */
export function textOf(style: ClientStyle, reply: Reply): string {
  return texts[style](reply);
}

/** A call in the terms of all styles. */
export interface Call {
  readonly name: unknown;
  readonly id: string;
}

const calls: Readonly<Record<ClientStyle, (reply: Reply) => Json[]>> = {
  chat: (reply) =>
    list(message(reply)["tool_calls"]).map(({ id, function: called }) => ({
      name: object(called)["name"],
      id,
    })),
  responses: ({ json }) =>
    list(json["output"])
      .filter(({ type }) => type === "function_call")
      .map(({ name, call_id: id }) => ({ name, id })),
  messages: ({ json }) => list(json["content"]).filter(({ type }) => type === "tool_use"),
};

/** The calls of a reply. */
export function callsOf(style: ClientStyle, reply: Reply): Call[] {
  return calls[style](reply).map(({ name, id }) => ({ name, id: join([id]) }));
}
