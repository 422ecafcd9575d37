/** Examples that run when they are pasted: with this gateway's address, a model that exists and the real key. */
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";

/** Code in one of several languages. */
export interface CodeVersion {
  readonly id: string;
  readonly title: string;
  readonly code: string;
  /** What is copied, where it is more than what is shown. */
  readonly copied?: () => string;
}

interface SnippetOptions {
  /** Scheme, host and port of the gateway. */
  readonly origin: string;
  readonly model: string;
  /** The secret; `undefined`: it is read from `UAS_API_KEY`. */
  readonly key: string | undefined;
}

/** A first call in several languages. Some SDKs expect `/v1` in their base URL, others add it themselves. */
export function snippets({ origin, model, key }: SnippetOptions): readonly CodeVersion[] {
  const shellKey = key ?? "$UAS_API_KEY";
  const python = key === undefined ? 'os.environ["UAS_API_KEY"]' : JSON.stringify(key);
  const node = key === undefined ? "process.env.UAS_API_KEY" : JSON.stringify(key);
  const importOs = key === undefined ? "import os\n" : "";
  return [
    {
      id: "curl",
      title: "curl",
      code: `curl ${origin}/v1/chat/completions \\
  -H "authorization: Bearer ${shellKey}" \\
  -H "content-type: application/json" \\
  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
    },
    {
      id: "python",
      title: "Python",
      code: `${importOs}from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${python})
reply = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(reply.choices[0].message.content)`,
    },
    {
      id: "node",
      title: "Node.js",
      code: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: ${node} });
const reply = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(reply.choices[0].message.content);`,
    },
    {
      id: "anthropic",
      title: "Anthropic",
      code: `${importOs}from anthropic import Anthropic

client = Anthropic(base_url="${origin}", api_key=${python})
reply = client.messages.create(
    model="${model}",
    max_tokens=256,
    messages=[{"role": "user", "content": "Hello"}],
)
print(reply.content[0].text)`,
    },
    {
      id: "claude-code",
      title: "Claude Code",
      code: `export ANTHROPIC_BASE_URL=${origin}
export ANTHROPIC_AUTH_TOKEN="${shellKey}"
export ANTHROPIC_MODEL=${model}
claude`,
    },
  ];
}

/** A curl that submits a task, with the key from the environment. */
export function taskSnippet({ origin, body }: { origin: string; body: object }): string {
  const json = JSON.stringify(body, undefined, 2).replaceAll("'", String.raw`'\''`);
  return `curl ${origin}/api/ai/tasks \\
  -H "authorization: Bearer $UAS_API_KEY" \\
  -H "content-type: application/json" \\
  -d '${json}'`;
}

// A curl that makes a request like a call of the log, with placeholders for what the log does not have.

/** What the log has of a call. */
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
 * Writes the curl. Path and model are the client's words: they are quoted so that a shell takes them for nothing
 * else, whoever made the call.
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

/** The body for the wire style of the path; `undefined`: unknown style. */
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
