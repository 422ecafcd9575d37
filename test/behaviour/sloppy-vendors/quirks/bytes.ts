/** Quirks of streams and replies as bytes, which vendors of all styles show. */
import type { Quirk } from "./quirk.ts";

/** Writes what JSON need not escape as escapes, as Python does. */
function escaped(text: string): string {
  return text.replaceAll(
    /[^\0-\x7f\uFEFF]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export const byteQuirks: readonly Quirk[] = [
  {
    name: "ends its lines with CRLF",
    vendors: "servers in Java and C#, Gemini",
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html",
    about: "lines",
    streamText: (text) => text.replaceAll("\n", "\r\n"),
  },
  {
    name: "writes no space behind the colon of a field",
    vendors: "Spring, Ant Group, gateways",
    source: "openai/openai-python#498",
    about: "colon",
    streamText: (text) => text.replaceAll(/(^|\n)(data|event): /g, "$1$2:"),
  },
  {
    name: "sends comments between the events",
    vendors: "OpenRouter, DeepSeek, Vercel AI Gateway",
    source: "https://openrouter.ai/docs/api-reference/streaming",
    about: "start",
    streamText: (text) => `: PROCESSING\n\n${text.replaceAll("\n\n", "\n\n: keep-alive\n\n")}`,
  },
  {
    name: "numbers its events and says when to come back",
    vendors: "DashScope, Spring",
    source: "https://help.aliyun.com/zh/model-studio/qwen-api-via-dashscope",
    about: "start",
    streamText: (text) =>
      text.replaceAll(/(^|\n)data:/g, "$1id:1\nretry:3000\n:HTTP_STATUS/200\ndata:"),
  },
  {
    name: "leaves out the empty line behind the last event",
    vendors: "small compatible servers",
    source: "milind-soni/OpenMausBot#1377",
    about: "end",
    streamText: (text) => text.trimEnd(),
  },
  {
    name: "spreads the data of an event over two lines",
    vendors: "servers that write indented JSON",
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html",
    about: "lines",
    streamText: (text) => text.replaceAll(/(?<=(?:^|\n)data: ?)\{(?!\})/g, "{\ndata: "),
  },
  {
    name: "begins a stream with a byte order mark",
    vendors: "compatible vendors",
    source: "openai/openai-python#3819",
    about: "start",
    streamText: (text) => `\uFEFF${text}`,
  },
  {
    name: "ends every stream with [DONE]",
    vendors: "vLLM, Copilot, proxies, in other styles than chat",
    source: "vllm-project/vllm#37510",
    about: "end mark",
    streamText: (text) =>
      /data: ?\[DONE\]\s*$/.test(text) ? text : `${text.trimEnd()}\n\ndata: [DONE]\n\n`,
  },
  {
    name: "escapes all characters beyond ASCII",
    vendors: "servers in Python",
    source: "https://docs.python.org/3/library/json.html",
    streamText: escaped,
    wholeText: escaped,
  },
  {
    name: "begins a whole reply with empty lines, to keep the connection alive",
    vendors: "DeepSeek",
    source: "https://api-docs.deepseek.com/quick_start/rate_limit",
    wholeText: (text) => `\n\n  \n${text}\n`,
  },
  {
    name: "writes JSON with spaces",
    vendors: "servers in Python",
    source: "https://docs.python.org/3/library/json.html",
    streamText: (text) =>
      text.replaceAll(/(?<=(?:^|\n)data: ?)\{[^\n]*/g, (json: string) => spaced(json)),
    wholeText: spaced,
  },
];

/** Adds a space behind commas and colons that are not in a string. */
function spaced(json: string): string {
  return json.replaceAll(/"(?:[^"\\]|\\.)*"|[,:]/g, (token) =>
    token === "," || token === ":" ? `${token} ` : token,
  );
}
