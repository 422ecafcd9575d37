/** A chat completion, streamed: the request that the page shows as curl, byte for byte. */

/** One turn of a conversation. */
export interface Turn {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** What is asked for. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Turn[];
  readonly max_tokens?: number;
  readonly temperature?: number;
  readonly stream: true;
}

/** A refusal of the gateway, in its own words. */
export class ChatError extends Error {
  readonly requestId: string;

  constructor(message: string, requestId: string) {
    super(message);
    this.requestId = requestId;
  }
}

/**
 * Runs a completion.
 *
 * @param onText called with each piece of the reply
 * @returns the request id, by which the call is found
 * @throws ChatError where the gateway refuses, or ends the stream with an error
 */
export async function runChat(
  request: ChatRequest,
  { key, signal, onText }: { key: string; signal: AbortSignal; onText: (text: string) => void },
): Promise<string> {
  const requestId = `playground-${crypto.getRandomValues(new Uint32Array(3)).join("-")}`;
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    // The cookie counts for nothing here, so it is not sent.
    credentials: "omit",
    body: JSON.stringify(request),
    signal,
  });
  if (!response.ok || response.body === null) {
    throw new ChatError(messageOf(await response.text()), requestId);
  }
  for await (const data of eventsOf(response.body)) {
    const told = readChunk(data);
    if (told.error !== undefined) throw new ChatError(told.error, requestId);
    if (told.text !== "") onText(told.text);
  }
  return requestId;
}

interface Chunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
  readonly error?: { readonly message?: string };
}

function readChunk(data: string): { text: string; error?: string } {
  const { choices, error } = JSON.parse(data) as Chunk;
  const text = choices?.[0]?.delta?.content ?? "";
  return error === undefined ? { text } : { text, error: error.message ?? data };
}

function messageOf(body: string): string {
  try {
    return (JSON.parse(body) as Chunk).error?.message ?? body;
  } catch {
    return body;
  }
}

/** The `data:` of each event, up to the end mark. */
async function* eventsOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const data = /^data: ?(.*?)\r?$/.exec(line)?.[1] ?? "";
      if (data === "[DONE]") return;
      if (data !== "") yield data;
    }
  }
}

/** The request for the shell, with the key read from the environment. */
export function chatCurl(origin: string, request: ChatRequest): string {
  const body = JSON.stringify(request, undefined, 2).replaceAll("'", String.raw`'\''`);
  return `curl -N ${origin}/v1/chat/completions \\
  -H "authorization: Bearer $UAS_API_KEY" \\
  -H "content-type: application/json" \\
  -d '${body}'`;
}
