/** What is said in the playground: messages as chat completions have them, and the request that they make. */

/** A text of a message. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** A picture of a message, as a `data:` address. */
export interface ImagePart {
  readonly type: "image_url";
  readonly image_url: { readonly url: string };
}

/** What the model wants a tool to do. What else the vendor sent with it goes back to it as it came. */
export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: {
    readonly name: string;
    /** JSON, as the model wrote it: it may be none. */
    readonly arguments: string;
  };
}

export interface AssistantMessage {
  readonly role: "assistant";
  /** `null`: it only calls tools. */
  readonly content: string | null;
  readonly tool_calls?: readonly ToolCall[];
  /** What it thought before it called tools: some vendors want it back. */
  readonly reasoning_content?: string;
}

/** One message. */
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

/** What is asked for. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly FunctionTool[];
  readonly max_tokens?: number;
  readonly temperature?: number;
  readonly stream: true;
}

/** What the fields beside a conversation say. */
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

/** A message of the user. With pictures it is a list of parts, the text first. */
export function userMessage(text: string, pictures: readonly string[]): Message {
  if (pictures.length === 0) return { role: "user", content: text };
  const parts = pictures.map((url): ImagePart => ({ type: "image_url", image_url: { url } }));
  const said: readonly TextPart[] = text.trim() === "" ? [] : [{ type: "text", text }];
  return { role: "user", content: [...said, ...parts] };
}

/** The body of a request: what is sent, and what the page shows, byte for byte. */
export function bodyOf(request: object): string {
  return JSON.stringify(request, undefined, 2);
}

/** The same request for the eye: of each picture only the beginning. */
export function abbreviated(request: ChatRequest): ChatRequest {
  return { ...request, messages: request.messages.map(shortMessage) };
}

/** How much of a picture's address is shown, in characters. */
const shownChars = 48;

function shortMessage(message: Message): Message {
  if (message.role !== "user" || typeof message.content === "string") return message;
  const content = message.content.map((part) => {
    if (part.type === "text" || part.image_url.url.length <= shownChars) return part;
    return { ...part, image_url: { url: `${part.image_url.url.slice(0, shownChars)}…` } };
  });
  return { ...message, content };
}

/** The pictures of a message. */
export function imagesOf(message: Message): readonly string[] {
  if (message.role !== "user" || typeof message.content === "string") return [];
  return message.content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []));
}

/** The text of a message. */
export function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The tools that the model called last and that have not answered yet. */
export function openCalls(messages: readonly Message[]): readonly ToolCall[] {
  const last = messages.at(-1);
  return last?.role === "assistant" ? (last.tool_calls ?? []) : [];
}
