/**
 * A conversation of the playground: messages of chat completions, the request that they make, and
 * its tools.
 */

/** A text of a message. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** An image of a message, as a `data:` address. */
export interface ImagePart {
  readonly type: "image_url";
  readonly image_url: { readonly url: string };
}

/** A tool call of the model. Other members from the vendor are sent back unchanged. */
export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: {
    readonly name: string;
    /** As the model wrote it: it may be invalid JSON. */
    readonly arguments: string;
  };
}

export interface AssistantMessage {
  readonly role: "assistant";
  /** Null if it only calls tools. */
  readonly content: string | null;
  readonly tool_calls?: readonly ToolCall[];
  /** The reasoning before the tool calls: some vendors require it back. */
  readonly reasoning_content?: string;
}

/** A message of the conversation. */
export type Message =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string | readonly (TextPart | ImagePart)[] }
  | AssistantMessage
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string };

/** A function that the model may call. */
export interface FunctionTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** A JSON Schema. */
    readonly parameters: object;
  };
}

/** The request of a chat completion. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly FunctionTool[];
  readonly max_tokens?: number;
  readonly temperature?: number;
  readonly stream: true;
}

/** The settings of a conversation, as typed. */
export interface Settings {
  readonly system: string;
  readonly maxTokens: string;
  readonly temperature: string;
}

/** The request that messages, settings and tools make. */
export function requestOf(
  model: string,
  messages: readonly Message[],
  { system, maxTokens, temperature, tools }: Settings & { tools: readonly FunctionTool[] },
): ChatRequest {
  const before: readonly Message[] =
    system.trim() === "" ? [] : [{ role: "system", content: system }];
  return {
    model,
    messages: [...before, ...messages],
    ...(tools.length > 0 && { tools }),
    ...(Number(maxTokens) > 0 && { max_tokens: Number(maxTokens) }),
    ...(temperature.trim() !== "" && { temperature: Number(temperature) }),
    stream: true,
  };
}

/** A message of the user. With images it is a list of parts, the text first. */
export function userMessage(text: string, images: readonly string[]): Message {
  if (images.length === 0) return { role: "user", content: text };
  const parts = images.map((url): ImagePart => ({ type: "image_url", image_url: { url } }));
  const said: readonly TextPart[] = text.trim() === "" ? [] : [{ type: "text", text }];
  return { role: "user", content: [...said, ...parts] };
}

/** The body of a request: sent and shown byte for byte the same. */
export function bodyOf(request: object): string {
  return JSON.stringify(request, undefined, 2);
}

/** The same request for display: each image is cut to its beginning. */
export function abbreviated(request: ChatRequest): ChatRequest {
  return { ...request, messages: request.messages.map(shortMessage) };
}

/** Number of characters of an image's data that are shown. */
const shownChars = 48;

function shortMessage(message: Message): Message {
  if (message.role !== "user" || typeof message.content === "string") return message;
  const content = message.content.map((part) => {
    if (part.type === "text" || part.image_url.url.length <= shownChars) return part;
    return { ...part, image_url: { url: `${part.image_url.url.slice(0, shownChars)}…` } };
  });
  return { ...message, content };
}

/** The images of a message. */
export function imagesOf(message: Message): readonly string[] {
  if (message.role !== "user" || typeof message.content === "string") return [];
  return message.content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []));
}

/** The text of a message. */
export function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The tool calls at the end of a conversation, which have no results yet. */
export function openCalls(messages: readonly Message[]): readonly ToolCall[] {
  const last = messages.at(-1);
  return last?.role === "assistant" ? (last.tool_calls ?? []) : [];
}
