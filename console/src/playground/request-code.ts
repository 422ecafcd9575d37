/** The code that makes a request. */
import { bodyOf, type ChatRequest, abbreviated, imagesOf } from "./conversation.ts";
import type { CodeVersion } from "../common/snippets.ts";
import { chatPath } from "./chat.ts";

/** The request in several languages: images are shown shortened and copied in full. */
export function chatCode(origin: string, request: ChatRequest): readonly CodeVersion[] {
  const shown = abbreviated(request);
  const version = (
    id: string,
    title: string,
    write: (origin: string, written: ChatRequest) => string,
  ): CodeVersion => ({
    id,
    title,
    code: write(origin, shown),
    copied: () => write(origin, request),
  });
  return [
    version("curl", "curl", curlOf),
    version("python", "Python", pythonOf),
    version("node", "Node.js", nodeOf),
  ];
}

/**
 * For the shell. A shell accepts no argument as long as an image: then the body is read from
 * standard input.
 */
function curlOf(origin: string, request: ChatRequest): string {
  const body = bodyOf(request);
  const hasImages = request.messages.some((message) => imagesOf(message).length > 0);
  const data = hasImages
    ? `--data-binary @- <<'BODY'\n${body}\nBODY`
    : `-d '${body.replaceAll("'", String.raw`'\''`)}'`;
  return `curl -N ${origin}${chatPath} \\
  -H "authorization: Bearer $UAS_API_KEY" \\
  -H "content-type: application/json" \\
  ${data}`;
}

function pythonOf(origin: string, request: ChatRequest): string {
  const members = Object.entries(request).map(
    ([name, value]) => `    ${name}=${pythonText(value, 4)},`,
  );
  return `import os

from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=os.environ["UAS_API_KEY"])
stream = client.chat.completions.create(
${members.join("\n")}
)
for chunk in stream:
    for choice in chunk.choices:
        print(${request.tools === undefined ? "" : "choice.delta.tool_calls or "}choice.delta.content or "", end="", flush=True)`;
}

/**
 * A JSON value as a Python literal. JSON strings are valid in Python, which has all their escapes.
 */
function pythonText(value: unknown, indent: number): string {
  const inner = " ".repeat(indent + 4);
  const outer = " ".repeat(indent);
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const items = Object.entries(value).map(
    ([name, each]) =>
      `${inner}${isList ? "" : `${JSON.stringify(name)}: `}${pythonText(each, indent + 4)},\n`,
  );
  const [open, close] = isList ? "[]" : "{}";
  return items.length === 0 ? `${open}${close}` : `${open}\n${items.join("")}${outer}${close}`;
}

function nodeOf(origin: string, request: ChatRequest): string {
  const calls =
    request.tools === undefined ? "" : "    if (delta.tool_calls) console.log(delta.tool_calls);\n";
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: process.env.UAS_API_KEY });
const stream = await client.chat.completions.create(${bodyOf(request)});
for await (const { choices } of stream) {
  for (const { delta } of choices) {
${calls}    process.stdout.write(delta.content ?? "");
  }
}`;
}
