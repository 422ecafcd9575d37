/** Support of tests of disconnecting clients: requests of every style, and the vendors' figures. */
import { priceDefault } from "../../support/gateway.ts";
import type { Caller } from "../../support/sdk-streams.ts";
import type { VendorStyle } from "../../support/style-gateway.ts";
import { strictChat } from "../../support/upstream/chat-strict.ts";
import type { Behaviour } from "../../support/upstream/exchange.ts";
import { strictGemini } from "../../support/upstream/gemini-strict.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { strictResponses } from "../../support/upstream/responses-strict.ts";
import { tokens } from "../../support/upstream/scenario.ts";

export type { Caller };

/** Where each style asks. */
export const callerPaths: Readonly<Record<Caller, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

/** The request. */
export interface CallerAsk {
  readonly model: string;
  readonly stream: boolean;
  readonly text: string;
}

/** A request in a style. */
export function callerRequest(caller: Caller, { model, stream, text }: CallerAsk): object {
  const messages = [{ role: "user", content: text }];
  if (caller === "responses") return { model, stream, input: text, store: false };
  if (caller === "messages") return { model, stream, max_tokens: 500, messages };
  return { model, stream, messages };
}

const answers: Readonly<Record<VendorStyle, Behaviour>> = {
  chat: strictChat().answer,
  responses: strictResponses().answer,
  messages: strictMessages().answer,
  gemini: strictGemini().answer,
};

/** Returns the answer of the strict vendor of a style. */
export function strictAnswer(style: VendorStyle): Behaviour {
  return answers[style];
}

const { input = 0n, cachedInput = 0n, cacheWrite = 0n, output = 0n } = priceDefault;

/** Cost of a strict vendor's reply by its reported usage. */
export const reportedCost: bigint =
  (BigInt(tokens.input - tokens.cached - tokens.written) * input +
    BigInt(tokens.cached) * cachedInput +
    BigInt(tokens.written) * cacheWrite +
    BigInt(tokens.output) * output) /
  1_000_000n;
