/** A vendor of Gemini's generateContent, in full strictness. */
import type { RecordedRequest } from "./exchange.ts";
import { check } from "./gemini-request.ts";
import { writeGemini } from "./gemini-reply.ts";
import { type Json, lastTextOf, object, objects, string, textOf, without } from "./read.ts";
import type { Rules } from "./rules.ts";
import { describeBytes, type Turn } from "./scenario.ts";
import { bracketPath, type ShapeError } from "./shape.ts";
import { dataFrame, type StrictStyle, strictStyle, type StyleError } from "./strict.ts";

/** Takes the credential as `x-goog-api-key`, and streams as server-sent events (`alt=sse`) only. */
export function strictGemini(): StrictStyle {
  return strictStyle({
    ownHeaders: ["x-goog-api-key"],
    foreignPrefixes: ["anthropic-", "openai-"],
    headers: { server: "scaffolding on HTTPServer2", "x-gemini-service-tier": "standard" },
    doorRefusal,
    check,
    messageOf,
    errorBody,
    errorFrame: (error) => dataFrame(errorBody(error)),
    turnOf,
    write: writeGemini,
  });
}

const path = /^\/v1(?:beta)?\/models\/([^/:]+):(generateContent|streamGenerateContent)(\?.*)?$/;

function doorRefusal(
  { method, url, headers }: RecordedRequest,
  rules: Rules,
): StyleError | undefined {
  const key = headers["x-goog-api-key"];
  if (key !== rules.secret) {
    return { status: 400, message: "API key not valid. Please pass a valid API key." };
  }
  const [, model, verb, query] = path.exec(url) ?? [];
  if (method !== "POST" || verb === undefined) return { status: 404, message: "Not found." };
  if (model !== "vendor-model") {
    return { status: 404, message: `models/${model} is not found for API version v1beta` };
  }
  if (verb === "streamGenerateContent" && !/\balt=sse\b/.test(query ?? "")) {
    return { status: 400, message: "This simulation streams with alt=sse only." };
  }
  return undefined;
}

function messageOf({ kind, path: at, message }: ShapeError): string {
  const where = bracketPath(at);
  if (kind === "unknown") {
    const name = String(at.at(-1));
    return `Invalid JSON payload received. Unknown name "${name}" at '${bracketPath(at.slice(0, -1))}': Cannot find field.`;
  }
  return `* GenerateContentRequest.${where}: ${message || "required field is missing"}\n`;
}

const states: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
};

function errorBody({ status, message }: StyleError): Json {
  return { error: { code: status, message, status: states[status] ?? "UNKNOWN" } };
}

function turnOf({ json = {}, url }: RecordedRequest): Turn {
  const contents = objects(json["contents"]);
  const spoken = (turn: Json): string => lastTextOf(turn["parts"]);
  const atUser = contents.findLastIndex((turn) => turn["role"] !== "model" && spoken(turn) !== "");
  const user = contents[atUser] ?? {};
  const after = contents.slice(atUser + 1);
  const parts = after.flatMap((turn) => objects(turn["parts"]));
  const config = object(json["generationConfig"]);
  const calling = object(object(json["toolConfig"])["functionCallingConfig"]);
  return {
    model: path.exec(url)?.[1] ?? "",
    stream: url.includes(":streamGenerateContent"),
    text: spoken(user),
    system: textOf(object(json["systemInstruction"])["parts"]),
    tools: objects(json["tools"])
      .flatMap((tool) => objects(tool["functionDeclarations"]))
      .map((one) => ({
        name: string(one["name"]),
        schema: one["parametersJsonSchema"] ?? one["parameters"],
      })),
    toolChoice: toolChoiceOf(calling),
    parallel: true,
    results: parts
      .filter((part) => part["functionResponse"])
      .map((part) => resultOf(object(part["functionResponse"]))),
    rounds: after.filter((turn) => objects(turn["parts"]).some((part) => part["functionCall"]))
      .length,
    images: imagesIn(user["parts"]),
    schema: config["responseJsonSchema"] ?? config["responseSchema"],
    reasoningBlocks: contents
      .flatMap((turn) => objects(turn["parts"]))
      .filter((part) => part["thoughtSignature"]).length,
    settings: without(json, ["contents", "systemInstruction", "tools"]),
  };
}

/** The one text of a response, else its JSON; then its images. */
function resultOf(response: Json): string {
  const value = object(response["response"]);
  const [only] = Object.values(value);
  const text = typeof only === "string" ? only : JSON.stringify(value);
  return [text, ...imagesIn(response["parts"])].join(" ");
}

function imagesIn(parts: unknown): string[] {
  return objects(parts)
    .filter((part) => part["inlineData"])
    .map((part) => {
      const { mimeType, data } = object(part["inlineData"]);
      return describeBytes(string(mimeType), Buffer.from(string(data), "base64"));
    });
}

function toolChoiceOf({ mode, allowedFunctionNames: allowed }: Json): string {
  if (mode === "NONE") return "none";
  if (mode !== "ANY") return "auto";
  return Array.isArray(allowed) && allowed.length === 1 ? String(allowed[0]) : "required";
}
