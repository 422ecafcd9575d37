/** A vendor of the messages style, in full strictness, in both versions of its interface. */
import type { RecordedRequest } from "./exchange.ts";
import { isVersion } from "./messages-request.ts";
import { writeMessage } from "./messages-reply.ts";
import { check } from "./messages-rules.ts";
import { type Json, lastTextOf, object, objects, string, textOf, without } from "./read.ts";
import type { Rules } from "./rules.ts";
import { describeBytes, type Turn } from "./scenario.ts";
import { dotPath, type ShapeError } from "./shape.ts";
import { namedFrame, type StrictStyle, strictStyle, type StyleError } from "./strict.ts";

/** Takes the credential as `x-api-key` or as a bearer. */
export function strictMessages(): StrictStyle {
  return strictStyle({
    ownHeaders: ["x-api-key"],
    foreignPrefixes: ["openai-", "x-goog-"],
    headers: {
      "request-id": "req_vendor_7f3a",
      "anthropic-organization-id": "org-operators-own",
      "anthropic-ratelimit-requests-remaining": "9999",
      "set-cookie": "__cf_bm=vendor-cookie; path=/; HttpOnly",
      server: "cloudflare",
    },
    doorRefusal,
    check,
    messageOf,
    errorBody,
    errorFrame: (error) => namedFrame(errorBody(error)),
    turnOf,
    write: writeMessage,
  });
}

function doorRefusal(
  { method, url, headers }: RecordedRequest,
  rules: Rules,
): StyleError | undefined {
  const { authorization, "x-api-key": key } = headers;
  if (
    authorization !== undefined ? authorization !== `Bearer ${rules.secret}` : key !== rules.secret
  ) {
    return { status: 401, message: "invalid x-api-key" };
  }
  if (url.split("?")[0] !== "/v1/messages") return { status: 404, message: "Not found" };
  if (method !== "POST") return { status: 405, message: "Method Not Allowed" };
  const version = headers["anthropic-version"];
  if (!isVersion(version as string | undefined)) {
    return {
      status: 400,
      message: `anthropic-version: "${String(version ?? "")}" is not a valid version`,
    };
  }
  return undefined;
}

function messageOf({ kind, path, message }: ShapeError): string {
  const where = path.length > 0 ? `${dotPath(path)}: ` : "";
  if (kind === "unknown") return `${where}Extra inputs are not permitted`;
  if (kind === "missing") return `${where}Field required`;
  return `${where}${message}`;
}

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

function errorBody({ status, message, details }: StyleError): Json {
  return {
    type: "error",
    error: {
      type: types[status] ?? (status < 500 ? "invalid_request_error" : "api_error"),
      message,
      ...(details && { details }),
    },
    request_id: "req_vendor_7f3a",
  };
}

const notSettings = ["model", "messages", "system", "tools", "stream"];

function turnOf({ json = {} }: RecordedRequest): Turn {
  const messages = objects(json.messages);
  const isText = (message: Json): boolean =>
    message["role"] === "user" && textOf(message["content"]) !== "";
  const atUser = messages.findLastIndex(isText);
  const user = messages[atUser]?.["content"];
  const after = messages.slice(atUser + 1);
  const blocksAfter = after.flatMap(({ content }) => objects(content));
  const late = messages.filter(({ role }) => role === "system");
  const choice = object(json["tool_choice"]);
  return {
    model: string(json.model),
    stream: json.stream === true,
    text: lastTextOf(user),
    system: [textOf(json["system"]), ...late.map(({ content }) => textOf(content))]
      .filter((text) => text !== "")
      .join("\n"),
    tools: objects(json["tools"]).map((tool) => ({
      name: string(tool["name"]),
      schema: tool["input_schema"],
    })),
    toolChoice: toolChoiceOf(choice),
    parallel: choice["disable_parallel_tool_use"] !== true,
    results: blocksAfter
      .filter(({ type }) => type === "tool_result")
      .map(({ content }) => [textOf(content), ...imagesIn(content)].filter(Boolean).join(" ")),
    rounds: after.filter(({ content }) => objects(content).some(({ type }) => type === "tool_use"))
      .length,
    images: imagesIn(user),
    schema: object(object(json["output_config"])["format"])["schema"],
    reasoningBlocks: messages
      .flatMap(({ content }) => objects(content))
      .filter(({ type }) => /thinking$/.test(string(type))).length,
    settings: without(json, notSettings),
  };
}

function toolChoiceOf(choice: Json): string {
  switch (choice["type"]) {
    case "any":
      return "required";
    case "none":
      return "none";
    case "tool":
      return string(choice["name"]);
    default:
      return "auto";
  }
}

function imagesIn(content: unknown): string[] {
  return objects(content)
    .filter(({ type }) => type === "image")
    .map((block) => {
      const { media_type: mime, data, url } = object(block["source"]);
      return data === undefined
        ? string(url)
        : describeBytes(string(mime), Buffer.from(string(data), "base64"));
    });
}
