/**
 * A curl command that repeats a call of the log, with placeholders for data that the log does not
 * contain.
 */
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";

/** The logged data of a call. */
export type KnownCall = Pick<CallRecord, "path" | "model" | "stream">;

interface CurlOptions {
  /** Scheme, host and port of the gateway. */
  readonly origin: string;
  /** The placeholder for the message: `<your message>`. */
  readonly message: string;
  /** The placeholder for a body of unknown shape. */
  readonly body: string;
  /** For tasks: example parameters, by the name of their field. */
  readonly taskParams?: object | undefined;
}

/** The path that tasks are submitted to. */
export const tasksPath = "/api/ai/tasks";

/** `max_tokens` of Anthropic messages, which require it. */
const messagesTokens = 1024;

/**
 * Writes the curl command. Path and model come from the client: they are quoted, so that a shell
 * treats them as plain text.
 */
export function callCurl(call: KnownCall, options: CurlOptions): string {
  const { path, stream } = call;
  const body = bodyOf(call, options);
  const isEvents = stream && path.endsWith(":streamGenerateContent");
  const url = quoted(`${options.origin}${path}${isEvents ? "?alt=sse" : ""}`);
  const data =
    body === undefined
      ? `'${escaped(options.body)}'`
      : `'${escaped(JSON.stringify(body, undefined, 2))}'`;
  return `curl ${stream ? "-N " : ""}${url} \\
  -H "authorization: Bearer $UAS_API_KEY" \\
  -H "content-type: application/json" \\
  -d ${data}`;
}

/** The body for the wire style of the path; undefined if the style is unknown. */
function bodyOf({ path, model, stream }: KnownCall, options: CurlOptions): object | undefined {
  const { message, taskParams } = options;
  const streamed = stream && { stream };
  const messages = [{ role: "user", content: message }];
  if (path === tasksPath) return { modelKey: model, ...taskParams };
  if (/^\/api\/ai\/(?:generate|stream-generate)$/.test(path)) return { model, messages };
  if (/\/chat\/completions$/.test(path)) return { model, messages, ...streamed };
  if (/\/responses$/.test(path)) return { model, input: message, ...streamed };
  if (/\/responses\/input_tokens$/.test(path)) return { model, input: message };
  if (/\/messages$/.test(path)) {
    return { model, max_tokens: messagesTokens, messages, ...streamed };
  }
  if (/\/messages\/count_tokens$/.test(path)) return { model, messages };
  if (/\/v1\/embeddings$/.test(path)) return { model, input: message };
  if (/:(?:generateContent|streamGenerateContent|countTokens)$/.test(path)) {
    return { contents: [{ role: "user", parts: [{ text: message }] }] };
  }
  return undefined;
}

/** One word of a shell command. */
function quoted(word: string): string {
  return /^[\w./:~@%+=,-]+$/.test(word) ? word : `'${escaped(word)}'`;
}

function escaped(text: string): string {
  return text.replaceAll("'", String.raw`'\''`);
}
