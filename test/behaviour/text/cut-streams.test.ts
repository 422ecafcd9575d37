/**
 * A stream that breaks after content ends with an error event of the caller's style (R-ERR-6). Its
 * code says that a retry makes sense, the official SDKs raise it, and what was delivered is
 * charged.
 */
import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk";
import AnthropicV0, { APIError as AnthropicV0Error } from "anthropic-sdk-v0";
import OpenAI, { APIError } from "openai";
import OpenAIV6, { APIError as APIErrorV6 } from "openai-v6";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { modelOf, useStyleGateway, vendorStyles } from "../../support/style-gateway.ts";
import { newRequestId } from "../harness.ts";

const styles = useStyleGateway();

interface Asking {
  readonly key: string;
  readonly requestId: string;
  readonly model: string;
  readonly text: string;
}

type Read = (asking: Asking, onText: (text: string) => void) => Promise<void>;

/** A client reads a stream to its end: it returns the text, and throws what the SDK throws. */
interface Client {
  readonly raised: new (...values: never[]) => Error;
  /** The gateway's code in a raised error. */
  readonly codeOf: (error: Error) => unknown;
  readonly read: Read;
}

const options = ({ key, requestId }: Asking, path: string) => ({
  apiKey: key,
  baseURL: `${styles.gateway.url}${path}`,
  maxRetries: 0,
  defaultHeaders: { "x-request-id": requestId },
});

const openaiCode = (error: Error): unknown => (error as APIError).code;

function chat(make: (asking: Asking) => OpenAI | OpenAIV6): Read {
  return async (asking, onText) => {
    const { model, text: content } = asking;
    const { completions } = make(asking).chat as OpenAI["chat"];
    const stream = await completions.create({
      model,
      messages: [{ role: "user", content }],
      stream: true,
    });
    for await (const { choices } of stream) onText(choices[0]?.delta.content ?? "");
  };
}

function responses(make: (asking: Asking) => OpenAI | OpenAIV6): Read {
  return async (asking, onText) => {
    const { model, text: input } = asking;
    const resource = make(asking).responses as OpenAI["responses"];
    for await (const event of await resource.create({ model, input, stream: true })) {
      if (event.type === "response.output_text.delta") onText(event.delta);
    }
  };
}

function messages(make: (asking: Asking) => Anthropic | AnthropicV0): Read {
  return async (asking, onText) => {
    const { model, text: content } = asking;
    const resource = make(asking).messages as Anthropic["messages"];
    const turns = [{ role: "user" as const, content }];
    const stream = await resource.create({ model, max_tokens: 64, messages: turns, stream: true });
    for await (const event of stream) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
        onText(event.delta.text);
      }
    }
  };
}

function anthropicCode(error: Error): unknown {
  const body = (error as AnthropicError).error as {
    readonly error?: { readonly details?: { readonly error_code?: unknown } };
  };
  return body.error?.details?.error_code;
}

const openai = (asking: Asking) => new OpenAI(options(asking, "/v1"));
const openaiV6 = (asking: Asking) => new OpenAIV6(options(asking, "/v1"));
const anthropic = (asking: Asking) => new Anthropic(options(asking, ""));
const anthropicV0 = (asking: Asking) => new AnthropicV0(options(asking, ""));

const clients: Readonly<Record<string, Client>> = {
  "chat completions": { raised: APIError, codeOf: openaiCode, read: chat(openai) },
  "chat completions, version 6": { raised: APIErrorV6, codeOf: openaiCode, read: chat(openaiV6) },
  responses: { raised: APIError, codeOf: openaiCode, read: responses(openai) },
  "responses, version 6": { raised: APIErrorV6, codeOf: openaiCode, read: responses(openaiV6) },
  messages: { raised: AnthropicError, codeOf: anthropicCode, read: messages(anthropic) },
  "messages, version 0": {
    ...{ raised: AnthropicV0Error, codeOf: anthropicCode, read: messages(anthropicV0) },
  },
};

describe.each(Object.entries(clients))("the SDK of %s", (_, { raised, codeOf, read }) => {
  it.each(vendorStyles)(
    "raises upstream_error where a vendor of %s cuts the stream, after the text that is charged",
    async (vendor) => {
      const { key } = await styles.gateway.customer();
      const requestId = newRequestId();
      const asking = { key, requestId, model: modelOf(vendor), text: "cut" };
      let got = "";
      const error: unknown = await read(asking, (text) => (got += text)).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(raised);
      expect(codeOf(error as Error)).toBe("upstream_error");
      expect((error as Error).message).toContain("try again");
      expect(got).toContain("Hello there,");
      const call = await styles.gateway.call(requestId);
      expect(call.ending).toBe(CallEnding.UPSTREAM_FAILED);
      expect(call.usage?.outputTokens).toBeGreaterThan(0);
      expect(call.cost?.amountNanos).toBeGreaterThan(0n);
    },
  );
});
