/**
 * R-MON-8: a translated reply whose vendor reports no usage reports the estimate that is charged.
 */
import { describe, expect, it } from "vitest";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { send } from "../../support/raw-http.ts";
import { modelOf, useStyleGateway } from "../../support/style-gateway.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { dataOf, newRequestId } from "../harness.ts";

const fixture = useStyleGateway();

const image = `data:image/png;base64,${Buffer.alloc(60_000, 7).toString("base64")}`;

const requests = {
  responses: {
    path: "/v1/responses",
    body: {
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", image_url: image },
          ],
        },
      ],
    },
  },
  messages: {
    path: "/v1/messages",
    body: {
      max_tokens: 64,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            {
              type: "image",
              source: { type: "base64", media_type: "image/png", data: image.split(",")[1] },
            },
          ],
        },
      ],
    },
  },
} as const;

interface Counted {
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** The last usage of a reply, and that of the first event of a stream. */
function usagesIn(body: Buffer, stream: boolean): Counted[] {
  const objects = stream ? dataOf(body).filter((data) => data.startsWith("{")) : [body.toString()];
  return objects.flatMap((json) => {
    const { usage, response, message } = JSON.parse(json) as Record<
      string,
      Counted & { usage?: Counted }
    >;
    return usage ?? response?.usage ?? message?.usage ?? [];
  });
}

describe.each(["responses", "messages"] as const)("a reply of %s", (caller) => {
  it.each([
    ["whole, without usage", false, null],
    ["streamed, without usage", true, null],
    [
      "whole, with no output counted",
      false,
      { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11 },
    ],
    [
      "streamed, with no output counted",
      true,
      { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11 },
    ],
  ])("that came %s reports what is charged", async (_name, stream, usage) => {
    const { key } = await fixture.gateway.customer();
    fixture.upstream("chat").script(answer({ usage, text: ["Hello", " there, friend"] }));
    const id = newRequestId();
    const { path, body } = requests[caller];
    const reply = await send(`${fixture.gateway.url}${path}`, {
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-request-id": id,
      },
      body: JSON.stringify({ model: modelOf("chat"), stream, ...body }),
    });
    expect(reply.status, reply.body.toString()).toBe(200);
    const call = await fixture.gateway.call(id);
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    const { inputTokens = 0, outputTokens = 0 } = call.usage ?? {};
    expect(outputTokens).toBe(Math.ceil("Hello there, friend".length / 4));
    // The image counts as one, not as 80 kB of text.
    expect(inputTokens).toBeGreaterThan(0);
    expect(inputTokens).toBeLessThan(2_000);
    const [first, ...rest] = usagesIn(reply.body, stream);
    const last = rest.at(-1) ?? first;
    expect(last).toMatchObject({ input_tokens: inputTokens, output_tokens: outputTokens });
    if (caller === "messages" && usage === null) expect(first?.input_tokens).toBe(inputTokens);
  });
});

describe.each(["chat-completions", "responses", "messages"] as const)(
  "a stream of %s",
  (caller) => {
    it("is charged what came after its vendor's last usage, too", async () => {
      const { key } = await fixture.gateway.customer();
      const chunk = (json: object): Buffer => {
        const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m" };
        return Buffer.from(`data: ${JSON.stringify({ ...head, ...json })}\n\n`);
      };
      const text = (content: string): Buffer =>
        chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
      const usage = { prompt_tokens: 11, completion_tokens: 9, total_tokens: 20 };
      const isRead = Promise.withResolvers<void>();
      fixture.upstream("chat").script(async (exchange) => {
        const { response } = exchange;
        response.writeHead(200, { "content-type": "text/event-stream" });
        await exchange.write(Buffer.concat([text("early"), chunk({ choices: [], usage })]));
        await isRead.promise;
        await exchange.write(text("x".repeat(2_000)));
        await exchange.write(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
        response.end("data: [DONE]\n\n");
      });
      const id = newRequestId();
      const chat = {
        path: "/v1/chat/completions",
        body: { messages: [{ role: "user", content: "Hello" }] },
      };
      const { path, body } = caller === "chat-completions" ? chat : requests[caller];
      const reply = await fetch(`${fixture.gateway.url}${path}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "x-request-id": id,
        },
        body: JSON.stringify({ model: modelOf("chat"), stream: true, ...body }),
      });
      expect(reply.status).toBe(200);
      const told: string[] = [];
      for await (const piece of (reply.body ?? []) as AsyncIterable<Uint8Array>) {
        told.push(Buffer.from(piece).toString());
        if (told.join("").includes("early")) isRead.resolve();
      }
      const call = await fixture.gateway.call(id);
      expect(call.usageSource).toBe(UsageSource.ESTIMATED);
      expect(call.usage).toMatchObject({ inputTokens: 11, outputTokens: 9 + 2_000 / 4 });
      // Relayed bytes are the vendor's own.
      if (caller !== "chat-completions") {
        expect(usagesIn(Buffer.from(told.join("")), true).at(-1)).toMatchObject({
          output_tokens: 509,
        });
      }
    });
  },
);
