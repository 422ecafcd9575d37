/**
 * Requests that the simulated vendor refuses, as OpenAI does, and requests that no gateway may ever
 * send.
 */
import { type ChatBody, isObject, type RecordedRequest } from "./exchange.ts";

/** An answer that refuses a request. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code: string | null;
  readonly param: string | null;
}

/** Rules of one simulation. */
export interface Rules {
  /** The only credential it takes. */
  readonly secret: string;
  /** The models it has. */
  readonly models: ReadonlySet<string>;
  /** Unknown top-level members that it refuses; it accepts all other unknown ones. */
  readonly refusedMembers: ReadonlySet<string>;
  /** `host:port` that requests must name. */
  readonly host: string;
}

/** The members that the gateway's own documented names would leak as. */
export const platformMembers = ["modelKey", "prompt", "requestContext"] as const;

const foreignHeaders = [
  "cookie",
  "x-api-key",
  "api-key",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
  "keep-alive",
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "openai-organization",
  "openai-project",
] as const;

/**
 * Returns violations that must never reach a vendor. Each line fails the test that caused it.
 * `ownHeaders`: foreign headers in which this vendor takes a credential.
 */
export function violationsOf(
  request: RecordedRequest,
  rules: Rules,
  ownHeaders: readonly string[] = [],
): string[] {
  const found: string[] = [];
  const where = `${request.method} ${request.url}`;
  for (const name of foreignHeaders) {
    if (request.headers[name] !== undefined && !ownHeaders.includes(name)) {
      found.push(`${where}: header ${name}`);
    }
  }
  for (const text of [
    request.url,
    request.rawHeaders.join("\n"),
    request.body.toString("latin1"),
  ]) {
    if (text.includes("uas_")) found.push(`${where}: a client's key ("uas_") in it`);
  }
  if (/[?&](api-key|api_key|key)=/i.test(request.url)) found.push(`${where}: a key in the query`);
  if (request.headers.host !== rules.host) {
    found.push(`${where}: host is ${request.headers.host}, not ${rules.host}`);
  }
  if (["authorization", ...ownHeaders].every((name) => request.headers[name] === undefined)) {
    found.push(`${where}: no authorization`);
  }
  return found;
}

/** Why the vendor refuses the request; undefined if it does not. */
export function refusalOf(request: RecordedRequest, rules: Rules): Refusal | undefined {
  const { authorization } = request.headers;
  if (authorization === undefined) {
    return refuse(401, "You didn't provide an API key.", { code: null });
  }
  if (authorization !== `Bearer ${rules.secret}`) {
    return refuse(401, "Incorrect API key provided.", { code: "invalid_api_key" });
  }
  const path = request.url.split("?")[0];
  if (path !== "/v1/chat/completions") {
    return refuse(404, `Invalid URL (${request.method} ${path})`);
  }
  if (request.method !== "POST") return refuse(405, `Not allowed to ${request.method} on ${path}`);
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
    return refuse(400, "you must set the content-type header to application/json");
  }
  if (request.json === undefined) return refuse(400, "We could not parse the JSON body.");
  return refusalOfBody(request.json, rules);
}

function refusalOfBody(body: ChatBody, rules: Rules): Refusal | undefined {
  for (const member of Object.keys(body)) {
    if (rules.refusedMembers.has(member)) {
      return refuse(400, `Unrecognized request argument supplied: ${member}`);
    }
  }
  if (typeof body.model !== "string") return refuse(400, "you must provide a model parameter");
  if (!rules.models.has(body.model)) {
    return refuse(
      404,
      `The model \`${body.model}\` does not exist or you do not have access to it.`,
      {
        code: "model_not_found",
      },
    );
  }
  return refusalOfNumbers(body) ?? refusalOfStream(body) ?? refusalOfMessages(body.messages);
}

const ranges: ReadonlyArray<readonly [member: string, min: number, max: number, whole: boolean]> = [
  ["max_tokens", 1, 1e9, true],
  ["max_completion_tokens", 1, 1e9, true],
  ["n", 1, 128, true],
  ["temperature", 0, 2, false],
  ["top_p", 0, 1, false],
  ["presence_penalty", -2, 2, false],
  ["frequency_penalty", -2, 2, false],
  ["top_logprobs", 0, 20, true],
];

function refusalOfNumbers(body: ChatBody): Refusal | undefined {
  for (const [member, min, max, whole] of ranges) {
    const value = body[member];
    if (value === undefined || value === null) continue;
    if (typeof value !== "number" || value < min || value > max || (whole && value % 1 !== 0)) {
      return refuse(400, `Invalid '${member}': expected a value from ${min} to ${max}.`, {
        param: member,
        code: "invalid_value",
      });
    }
  }
  const both = [body["max_tokens"], body["max_completion_tokens"]];
  if (both.every((value) => typeof value === "number")) {
    return refuse(
      400,
      "Setting 'max_tokens' and 'max_completion_tokens' at once is not supported.",
    );
  }
  return undefined;
}

function refusalOfStream(body: ChatBody): Refusal | undefined {
  const { stream, stream_options: options } = body;
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
    return refuse(400, "Invalid type for 'stream': expected a boolean.", { param: "stream" });
  }
  if (options === undefined || options === null) return undefined;
  if (stream !== true) {
    return refuse(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: "stream_options",
    });
  }
  if (!isObject(options))
    return refuse(400, "Invalid 'stream_options'.", { param: "stream_options" });
  return undefined;
}

const roles = new Set(["developer", "system", "user", "assistant", "tool", "function"]);

/** Every tool call is answered by a tool message right behind it, and nothing else is. */
function refusalOfMessages(messages: unknown): Refusal | undefined {
  if (!Array.isArray(messages) || messages.length === 0) {
    return refuse(400, "Invalid 'messages': empty array.", { param: "messages" });
  }
  let open = new Set<unknown>();
  for (const [at, message] of messages.entries()) {
    if (!isObject(message) || !roles.has(String(message["role"]))) {
      return refuse(400, `Invalid value: 'messages[${at}].role'.`, {
        param: `messages[${at}].role`,
      });
    }
    if (message["role"] === "tool") {
      if (!open.delete(message["tool_call_id"])) return orphan(at);
      continue;
    }
    if (open.size > 0) return unanswered(at);
    const calls = message["tool_calls"];
    open = new Set(Array.isArray(calls) ? calls.map((call: unknown) => idOf(call)) : []);
  }
  return open.size > 0 ? unanswered(messages.length) : undefined;
}

function idOf(call: unknown): unknown {
  return isObject(call) ? call["id"] : undefined;
}

function orphan(at: number): Refusal {
  return refuse(
    400,
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    { param: `messages.[${at}].role` },
  );
}

function unanswered(at: number): Refusal {
  return refuse(
    400,
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    { param: `messages.[${at}].role` },
  );
}

function refuse(
  status: number,
  message: string,
  { code = null, param = null }: { code?: string | null; param?: string | null } = {},
): Refusal {
  return { status, message, code, param };
}
