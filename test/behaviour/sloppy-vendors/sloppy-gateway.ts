/** A gateway whose vendors, one of each style, answer what a test says. */
import { afterAll, beforeAll, expect } from "vitest";
import type { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { newRequestId, styleVendors, useGateway } from "../harness.ts";
import { bearer } from "../rpc/harness.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import type { CallerStyle } from "./caller-reading.ts";
import { requests } from "./gateway-reading.ts";
import { type VendorStyle, vendorStyles } from "./vendor-reply.ts";

/** The vendor's reply. */
export interface VendorAnswer {
  readonly body: string;
  /** Whether it is said to be a stream. */
  readonly isStream: boolean;
}

/** Result of a call. */
export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly ending: CallEnding;
  readonly usage: unknown;
  readonly nanos: bigint;
}

/** Ready from `beforeAll` on. */
export interface SloppyGateway {
  /**
   * Sends a request, whose prompt is the word `prompt`, to a model whose vendor then answers so.
   */
  call(path: string, body: object, answer: VendorAnswer): Promise<Answered>;
  /** The same in a caller's style, with the tools of all conversations. */
  ask(
    asking: {
      readonly caller: CallerStyle;
      readonly vendor: VendorStyle;
      readonly stream: boolean;
    },
    answer: VendorAnswer,
  ): Promise<Answered>;
  /** Lets a model answer in the background. Returns the stored response, once it has ended. */
  background(vendor: VendorStyle, answer: VendorAnswer): Promise<string>;
}

/** A prompt so long that it can be the input that the vendor reports. */
const prompt = (number: number): string => `sample-${number} ${"and so on ".repeat(600)}`;

const paths: Readonly<Record<CallerStyle, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

/** Registers the gateway's start and end for a test file. */
export function useSloppyGateway(): SloppyGateway {
  /** By the number in the prompt. */
  const answers: VendorAnswer[] = [];
  const state: { vendor?: PlainVendor } = {};
  beforeAll(async () => {
    state.vendor = await startPlainVendor(({ body }) => {
      const { body: answer = "", isStream } = answers[Number(/sample-(\d+)/.exec(body)?.[1])] ?? {};
      const headers = { "content-type": isStream ? "text/event-stream" : "application/json" };
      return { headers, body: answer };
    });
  });
  afterAll(() => state.vendor?.close());
  const fixture = useGateway(() => ({
    vendors: styleVendors(state.vendor?.url ?? ""),
    models: Object.fromEntries(
      vendorStyles.map((style) => [
        `m-${style}`,
        { routes: [{ vendor: style, model: "vendor-model" }], maxOutputTokens: 8_192 },
      ]),
    ),
  }));

  const post = (path: string, body: object, answer: VendorAnswer, id: string) => {
    const number = answers.push(answer) - 1;
    return fetch(`${fixture.gateway.url}${path}`, {
      method: "POST",
      headers: {
        ...bearer(fixture.customer.key),
        "content-type": "application/json",
        "x-request-id": id,
      },
      body: JSON.stringify(body).replace('"prompt"', JSON.stringify(prompt(number))),
    });
  };

  return {
    async call(path, body, answer) {
      const id = newRequestId();
      const reply = await post(path, body, answer, id);
      const text = await reply.text();
      const { ending, usage, cost } = await fixture.gateway.call(id);
      return { status: reply.status, text, ending, usage, nanos: cost?.amountNanos ?? 0n };
    },

    ask({ caller, vendor, stream }, answer) {
      const { messages: _messages, input: _input, ...request } = requests[caller];
      const { stream_options: options, ...other } = request;
      const said =
        caller === "responses"
          ? { input: "prompt" }
          : { messages: [{ role: "user", content: "prompt" }] };
      const asked = stream && options !== undefined ? { stream_options: options } : {};
      const body = { ...other, ...said, ...asked, model: `m-${vendor}`, stream };
      return this.call(paths[caller], body, answer);
    },

    async background(vendor, answer) {
      const { stream: _stream, ...request } = requests.responses;
      const body = { ...request, input: "prompt", model: `m-${vendor}`, background: true };
      const reply = await post(paths.responses, body, answer, newRequestId());
      const { id } = (await reply.json()) as { readonly id: string };
      const url = `${fixture.gateway.url}${paths.responses}/${id}`;
      const stored = async (): Promise<string> =>
        (await fetch(url, { headers: bearer(fixture.customer.key) })).text();
      let text = "";
      await expect
        .poll(async () => {
          text = await stored();
          return (JSON.parse(text) as { readonly status: string }).status;
        })
        .toMatch(/^(?:completed|incomplete|failed)$/);
      return text;
    },
  };
}
