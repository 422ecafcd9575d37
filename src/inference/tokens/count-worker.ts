/** The counting thread: counts one text at a time, and loads the tables of an encoding with its first text. */
import { parentPort } from "node:worker_threads";
import { type CountText, loadEncoding } from "./bpe.ts";
import type { CountAnswer, CountQuestion } from "./counter.ts";
import type { Encoding } from "./family.ts";

const loaded = new Map<Encoding, Promise<CountText>>();

async function answer({ encoding, kind, body }: CountQuestion): Promise<CountAnswer> {
  try {
    let loading = loaded.get(encoding);
    if (loading === undefined) loaded.set(encoding, (loading = loadEncoding(encoding)));
    const count = await loading;
    const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
    return { tokens: (kind === "request" ? countRequest : countReply)(json, count) };
  } catch (error) {
    return { failure: String(error) };
  }
}

parentPort?.on("message", (question: CountQuestion) => {
  void answer(question).then((answered) => parentPort?.postMessage(answered));
});

// Counts the text that a model reads in a request or wrote in a reply, in any style. Pure.

/** Tokens that OpenAI's chat models add for each message, and for the start of the reply. */
const messageTokens = 3;
const replyTokens = 3;

/** The members of a request that models read. */
const modelMembers = new Set([
  "messages",
  "input",
  "contents",
  "system",
  "instructions",
  "systemInstruction",
  "prompt",
  "tools",
  "functions",
  "response_format",
  "text",
]);

/** Members that models read as JSON. Vendors may shorten tools, but never make them longer. */
const jsonMembers = new Set(["tools", "functions", "response_format", "input", "args", "response"]);

/** Members that only the vendor reads, not its model. */
const vendorOnly = new Set([
  "id",
  "type",
  "tool_call_id",
  "tool_use_id",
  "call_id",
  "item_id",
  "status",
  "phase",
  "detail",
  "media_type",
  "mimeType",
  "filename",
  "encrypted_content",
  "signature",
  "thoughtSignature",
  "thought_signature",
]);

/** Members of a reply that the model wrote. */
const writtenMembers = new Set([
  "content",
  "text",
  "refusal",
  "reasoning_content",
  "reasoning",
  "thinking",
  "arguments",
  "name",
  "input",
  "args",
]);

/** Counts a request without its media. @param json one JSON object */
function countRequest(json: string, count: CountText): number {
  let tokens = replyTokens;
  for (const [name, value] of Object.entries(recordOf(json))) {
    if (!modelMembers.has(name)) continue;
    const isJson = name !== "input" && jsonMembers.has(name);
    tokens += isJson ? count(JSON.stringify(value)) : countValue(value, count);
  }
  return tokens;
}

/** Counts a complete reply without usage. @param json one JSON object */
function countReply(json: string, count: CountText): number {
  return countWritten(recordOf(json), count);
}

function countValue(value: unknown, count: CountText): number {
  if (typeof value === "string") return count(value);
  // An embeddings request may contain tokens instead of text.
  if (typeof value === "number") return 1;
  if (Array.isArray(value)) {
    return value.reduce((sum: number, each) => sum + countValue(each, count), 0);
  }
  if (typeof value !== "object" || value === null) return 0;
  let tokens = "role" in value ? messageTokens : 0;
  for (const [name, each] of Object.entries(value)) {
    if (vendorOnly.has(name) || typeof each === "number") continue;
    const isJson = jsonMembers.has(name) && typeof each === "object";
    tokens += isJson ? count(JSON.stringify(each)) : countValue(each, count);
  }
  return tokens;
}

function countWritten(value: unknown, count: CountText): number {
  if (Array.isArray(value)) {
    return value.reduce((sum: number, each) => sum + countWritten(each, count), 0);
  }
  if (typeof value !== "object" || value === null) return 0;
  let tokens = 0;
  for (const [name, each] of Object.entries(value)) {
    if (typeof each !== "object") {
      if (typeof each === "string" && writtenMembers.has(name)) tokens += count(each);
    } else if (name === "input" || name === "args") tokens += count(JSON.stringify(each));
    else tokens += countWritten(each, count);
  }
  return tokens;
}

function recordOf(json: string): object {
  const value: unknown = JSON.parse(json);
  return typeof value === "object" && value !== null ? value : {};
}
