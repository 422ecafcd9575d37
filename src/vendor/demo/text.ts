/** What the demo vendor answers: chat completions, computed from the request alone. */
import { createHash } from "node:crypto";

/** A request that the demo vendor refuses, as a real one would. */
export class DemoRequestError extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;

  constructor(status: number, message: string, detail: { code?: string; param?: string } = {}) {
    super(message);
    this.status = status;
    this.code = detail.code ?? null;
    this.param = detail.param ?? null;
  }
}

/** An answer, in both forms. */
export interface DemoReply {
  readonly model: string;
  readonly stream: boolean;
  /** The reply as one object. */
  whole(): unknown;
  /** The reply as stream chunks, the usage chunk last where it was asked for. */
  chunks(): Iterable<unknown>;
}

interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_call_id?: string;
}

interface FunctionTool {
  readonly type: string;
  readonly function?: {
    readonly name: string;
    readonly parameters?: { properties?: Record<string, { type?: string }>; required?: string[] };
  };
}

interface ChatBody {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly stream?: boolean;
  readonly stream_options?: { include_usage?: boolean } | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly tools?: readonly FunctionTool[];
  readonly tool_choice?: string | { function?: { name?: string } } | null;
}

const roles = new Set(["system", "developer", "user", "assistant", "tool", "function"]);

/** Answers a request body. @throws DemoRequestError */
export function replyTo(json: string): DemoReply {
  const body = JSON.parse(json) as ChatBody;
  check(body);
  const call = toolCall(body);
  const words = call === undefined ? say(body).split(/(?<=\s)/) : [];
  const limit = body.max_completion_tokens ?? body.max_tokens ?? words.length;
  const said = words.slice(0, limit);
  const finish = call ? "tool_calls" : said.length < words.length ? "length" : "stop";
  const id = createHash("sha256").update(json).digest("hex").slice(0, 24);
  const usage = countUsage(body, call ? [call.arguments] : said);
  const head = { id: `chatcmpl-demo-${id}`, created: 0, model: body.model };
  return {
    model: body.model,
    stream: body.stream === true,
    whole: () => wholeReply({ head, said, call, finish, usage }),
    chunks: () => streamChunks({ head, said, call, finish, usage }, body),
  };
}

function check(body: ChatBody): void {
  if (body.model !== "chat" && body.model !== "instant") {
    throw new DemoRequestError(404, `The model \`${body.model}\` does not exist`, {
      code: "model_not_found",
    });
  }
  if (body.messages.length === 0) {
    throw new DemoRequestError(400, "messages: expected at least one message", {
      param: "messages",
    });
  }
  for (const [at, message] of body.messages.entries()) {
    if (typeof message !== "object" || message === null || !roles.has(message.role)) {
      const param = `messages[${at}].role`;
      throw new DemoRequestError(400, `${param}: expected one of ${[...roles].join(", ")}`, {
        param,
      });
    }
  }
  checkTools(body.tools ?? []);
}

/** The gateway passes tools on unread: what is wrong with them is for the vendor to say. */
function checkTools(tools: unknown): void {
  const isRight = (tool: FunctionTool | null): boolean => {
    const { name, parameters } = tool?.function ?? {};
    if (tool?.function === undefined) return typeof tool?.type === "string";
    return typeof name === "string" && Array.isArray(parameters?.required ?? []);
  };
  if (Array.isArray(tools) && tools.every(isRight)) return;
  throw new DemoRequestError(
    400,
    "tools: expected a list of functions with a name and parameters",
    {
      param: "tools",
    },
  );
}

/** Its one sentence, or what a tool answered. */
function say(body: ChatBody): string {
  const last = body.messages.at(-1);
  if (last?.role === "tool") return `The tool answered: ${textOf(last)}`;
  const question = body.messages.findLast((message) => message.role === "user");
  const said = question === undefined ? "nothing" : textOf(question) || "nothing";
  const images = question === undefined ? 0 : imageCount(question);
  const seen =
    images === 0
      ? ""
      : ` You sent ${images} ${images === 1 ? "picture" : "pictures"}, which it cannot see.`;
  return `This is the demo model of UAS Gateway, not an AI.${seen} You said: ${said}`;
}

function imageCount({ content }: ChatMessage): number {
  if (!Array.isArray(content)) return 0;
  return content.filter((part: { type?: unknown } | null) => part?.type === "image_url").length;
}

function textOf(message: ChatMessage): string {
  if (typeof message.content === "string") return message.content;
  if (!Array.isArray(message.content)) return "";
  return message.content
    .map((part: { text?: unknown }) => (typeof part?.text === "string" ? part.text : ""))
    .join("");
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Calls the named or first function once, then talks about its answer. */
function toolCall(body: ChatBody): Call | undefined {
  const isAnswered = body.messages.at(-1)?.role === "tool";
  if (isAnswered || body.tool_choice === "none") return undefined;
  const wanted =
    typeof body.tool_choice === "object" ? body.tool_choice?.function?.name : undefined;
  const tool = body.tools?.find(
    (each) => each.function && (wanted === undefined || each.function.name === wanted),
  )?.function;
  if (tool === undefined) return undefined;
  const question = body.messages.findLast((message) => message.role === "user");
  const text = question ? textOf(question) : "";
  const required = tool.parameters?.required ?? [];
  const values = required.map((name) => [
    name,
    argument(tool.parameters?.properties?.[name]?.type ?? "string", text),
  ]);
  return {
    id: "call_demo_1",
    name: tool.name,
    arguments: JSON.stringify(Object.fromEntries(values)),
  };
}

/** A value of a JSON Schema type. */
function argument(type: string, text: string): unknown {
  switch (type) {
    case "number":
    case "integer":
      return Number(/-?\d+/.exec(text)?.[0] ?? 1);
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return text;
  }
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** A token is four bytes of what it reads and a word of what it says. */
function countUsage(body: ChatBody, said: readonly string[]): Usage {
  const bytes = body.messages.reduce((sum, each) => sum + Buffer.byteLength(textOf(each)), 0);
  const prompt = Math.ceil(bytes / 4) + 3 * body.messages.length;
  return {
    prompt_tokens: prompt,
    completion_tokens: said.length,
    total_tokens: prompt + said.length,
  };
}

interface Parts {
  readonly head: { readonly id: string; readonly created: number; readonly model: string };
  readonly said: readonly string[];
  readonly call: Call | undefined;
  readonly finish: string;
  readonly usage: Usage;
}

function wholeReply({ head, said, call, finish, usage }: Parts): unknown {
  const tools = call && [
    { id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } },
  ];
  const message = {
    role: "assistant",
    content: call ? null : said.join(""),
    refusal: null,
    ...(tools && { tool_calls: tools }),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finish };
  return { ...head, object: "chat.completion", choices: [choice], usage };
}

function* streamChunks(parts: Parts, body: ChatBody): Iterable<unknown> {
  const { head, said, call, finish, usage } = parts;
  const wantsUsage = body.stream_options?.include_usage === true;
  const chunk = (choices: unknown[], counted: Usage | null = null): unknown => ({
    ...head,
    object: "chat.completion.chunk",
    choices,
    ...(wantsUsage && { usage: counted }),
  });
  const delta = (content: unknown, reason: string | null = null): unknown =>
    chunk([{ index: 0, delta: content, logprobs: null, finish_reason: reason }]);
  yield delta({ role: "assistant", content: call ? null : "", refusal: null });
  for (const word of said) yield delta({ content: word });
  if (call !== undefined) {
    const { id, name } = call;
    yield delta({
      tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: "" } }],
    });
    yield delta({ tool_calls: [{ index: 0, function: { arguments: call.arguments } }] });
  }
  yield delta({}, finish);
  if (wantsUsage) yield chunk([], usage);
}
