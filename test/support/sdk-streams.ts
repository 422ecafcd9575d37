/** Runs the official SDKs' helpers that accumulate streams and validate them strictly. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

/** A style that clients speak. */
export type Caller = "chat" | "responses" | "messages";

/** A reply as the client received it. */
export interface Got {
  readonly text: string;
  readonly reasoning: string;
  /** The inputs of calls, in their order. */
  readonly inputs: readonly string[];
  readonly stop: string | null | undefined;
  readonly outputTokens: number | undefined;
}

/** Address and content of an SDK's request. */
export interface Asking {
  /** Without a path. */
  readonly origin: string;
  readonly apiKey: string;
  readonly fetch?: typeof fetch;
  readonly model: string;
  readonly text: string;
  /** The request id. */
  readonly requestId?: string;
}

/** Accumulates a stream with the official SDK's helper, which throws on invalid events. */
export function accumulated(caller: Caller, asking: Asking): Promise<Got> {
  return readers[caller](asking);
}

/** Accumulates a given stream with the SDK's helper. */
export function accumulatedOf(caller: Caller, stream: string): Promise<Got> {
  const headers = { "content-type": "text/event-stream" };
  const answer = () => Promise.resolve(new Response(stream, { headers }));
  return readers[caller]({
    origin: "http://gateway.test",
    apiKey: "x",
    fetch: answer,
    model: "m",
    text: "hi",
  });
}

function address({ origin, apiKey, fetch, requestId = "x" }: Asking, path: string) {
  const defaultHeaders = { "x-request-id": requestId };
  return { apiKey, baseURL: origin + path, maxRetries: 0, defaultHeaders, ...(fetch && { fetch }) };
}

const readers: Readonly<Record<Caller, (asking: Asking) => Promise<Got>>> = {
  async chat(asking) {
    let reasoning = "";
    const sdk = new OpenAI(address(asking, "/v1")).chat.completions.stream({
      model: asking.model,
      messages: [{ role: "user", content: asking.text }],
      stream_options: { include_usage: true },
    });
    // A member that the SDK hands on, but does not add up.
    sdk.on("chunk", ({ choices: [first] }) => {
      const delta: Record<string, unknown> = { ...first?.delta };
      const piece = delta["reasoning_content"];
      if (typeof piece === "string") reasoning += piece;
    });
    const reply = await sdk.finalChatCompletion();
    const [choice] = reply.choices;
    return {
      text: choice?.message.content ?? "",
      reasoning,
      inputs: (choice?.message.tool_calls ?? []).map((call) =>
        call.type === "function" ? call.function.arguments : call.custom.input,
      ),
      stop: choice?.finish_reason,
      outputTokens: reply.usage?.completion_tokens,
    };
  },

  async responses(asking) {
    const reply = await new OpenAI(address(asking, "/v1")).responses
      .stream({ model: asking.model, input: asking.text })
      .finalResponse();
    const reasoning = reply.output.flatMap((item) =>
      item.type === "reasoning" ? item.summary.map(({ text }) => text) : [],
    );
    return {
      text: reply.output_text,
      reasoning: reasoning.join(""),
      inputs: reply.output.flatMap((item) =>
        item.type === "function_call" ? [item.arguments] : [],
      ),
      stop: `${reply.status} ${reply.incomplete_details?.reason}`,
      outputTokens: reply.usage?.output_tokens,
    };
  },

  async messages(asking) {
    const inputs: string[] = [];
    const sdk = new Anthropic(address(asking, "")).messages.stream({
      model: asking.model,
      max_tokens: 4_000,
      messages: [{ role: "user", content: asking.text }],
    });
    // Its accumulated input is partially parsed; the events contain the original.
    sdk.on("streamEvent", (event) => {
      if (event.type === "content_block_start" && event.content_block.type === "tool_use") {
        inputs.push("");
      } else if (event.type === "content_block_delta" && event.delta.type === "input_json_delta") {
        inputs[inputs.length - 1] += event.delta.partial_json;
      }
    });
    const reply = await sdk.finalMessage();
    return {
      text: reply.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
      reasoning: reply.content
        .map((block) => (block.type === "thinking" ? block.thinking : ""))
        .join(""),
      inputs,
      stop: reply.stop_reason,
      outputTokens: reply.usage.output_tokens,
    };
  },
};

/** The style's finish reasons for a reply that reached its token limit. */
export const stopWords: Readonly<Record<Caller, string>> = {
  chat: "length",
  responses: "incomplete max_output_tokens",
  messages: "max_tokens",
};

/** Accumulates the deltas of a stream without an SDK; all inputs as one. */
export function delivered(
  caller: Caller,
  stream: string,
): Pick<Got, "text" | "reasoning"> & { readonly input: string } {
  const sum = { text: "", reasoning: "", input: "" };
  for (const [, data = ""] of stream.matchAll(/^data: (\{.*)$/gm)) {
    // oxlint-disable-next-line typescript/no-explicit-any -- any event of any style
    const event: any = JSON.parse(data);
    if (caller === "chat") {
      const delta = event.choices[0]?.delta ?? {};
      sum.text += delta.content ?? "";
      sum.reasoning += delta.reasoning_content ?? "";
      sum.input += delta.tool_calls?.[0]?.function?.arguments ?? "";
    } else if (caller === "messages") {
      sum.text += event.delta?.text ?? "";
      sum.reasoning += event.delta?.thinking ?? "";
      sum.input += event.delta?.partial_json ?? "";
    } else if (event.type === "response.output_text.delta") sum.text += event.delta;
    else if (event.type === "response.reasoning_summary_text.delta") sum.reasoning += event.delta;
    else if (event.type === "response.function_call_arguments.delta") sum.input += event.delta;
  }
  return sum;
}
