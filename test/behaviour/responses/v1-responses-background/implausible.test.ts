/**
 * R-MON-8 and R-MON-15 in the background: figures that cannot be true, and replies without content.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { type ReplyStyle, textReply } from "../../../support/text-replies.ts";
import { newRequestId, styleVendors, useGateway } from "../../harness.ts";
import { ended, unique } from "./harness.ts";

const state: { vendor?: PlainVendor; style: ReplyStyle; usage: object; text: string } = {
  style: "chat",
  usage: {},
  text: "Hello",
};
const styles = ["chat", "responses", "messages", "gemini"] as const;

beforeAll(async () => {
  state.vendor = await startPlainVendor(() => {
    const { style, usage, text } = state;
    return textReply(style, { text, usage }, true);
  });
});
afterAll(() => state.vendor?.close());

const fixture = useGateway(() => ({
  vendors: styleVendors(state.vendor?.url ?? ""),
  models: Object.fromEntries(
    styles.map((style) => [style, { routes: [{ vendor: style, model: "vendor-model" }] }]),
  ),
}));

const usageOf: Record<ReplyStyle, (input: number, output: number) => object> = {
  chat: (input, output) => ({ prompt_tokens: input, completion_tokens: output }),
  responses: (input, output) => ({ input_tokens: input, output_tokens: output }),
  messages: (input, output) => ({ input_tokens: input, output_tokens: output }),
  gemini: (input, output) => ({ promptTokenCount: input, candidatesTokenCount: output }),
};

/** Lets a vendor of a style answer in the background. Returns the response and its record. */
async function answered(style: ReplyStyle, said: { usage: object; text?: string }, stream = false) {
  Object.assign(state, { style, text: "Hello", ...said });
  const { gateway, openai } = fixture;
  const id = newRequestId();
  const asked = { model: style, input: "Hi", background: true, max_output_tokens: 100 };
  const options = { headers: { "x-request-id": id }, idempotencyKey: unique() };
  let last: unknown;
  let responseId = "";
  if (stream) {
    const events = await openai.responses.create({ ...asked, stream: true }, options);
    for await (const event of events) {
      if (event.type === "response.created") responseId = event.response.id;
      if (event.type === "response.completed") last = event.response.usage;
    }
  } else responseId = (await openai.responses.create(asked, options)).id;
  const response = await ended(openai, responseId);
  const call = await gateway.call(id);
  return { response, call, last: stream ? last : response.usage };
}

async function metric(line: string): Promise<number> {
  const metrics = await (await fetch(`${fixture.gateway.internalUrl}/metrics`)).text();
  return Number(metrics.split(`${line} `)[1]?.split("\n")[0] ?? 0);
}

describe.each(styles)("a background response of a vendor of %s", (style) => {
  it.each([
    ["input", 2_000_000_000, 5, { outputTokens: 5 }],
    ["output", 10, 2_000_000_000, { inputTokens: 10, outputTokens: 100 }],
  ])(
    "shows the part of impossible %s that is charged, and raises the alarm",
    async (_what, input, output, expected) => {
      const usage = usageOf[style](input, output);
      const alarm = `uas_upstream_alarms_total{vendor="${style}",reason="usage_implausible"}`;
      const before = await metric(alarm);
      for (const stream of [false, true]) {
        const { response, call, last } = await answered(style, { usage }, stream);
        const { inputTokens = 0, outputTokens = 0 } = call.usage ?? {};
        expect(call.usage).toMatchObject(expected);
        expect(inputTokens).toBeLessThan(200);
        const shown = { input_tokens: inputTokens, output_tokens: outputTokens };
        expect([response.usage, last]).toMatchObject([shown, shown]);
        const nanos = BigInt(inputTokens) * 250n + BigInt(outputTokens) * 2_000n;
        expect(call.cost?.amountNanos).toBe(nanos);
      }
      expect(await metric(alarm)).toBe(before + 2);
      const loss = 'uas_platform_loss_nanos_total{reason="implausible"}';
      expect(await metric(loss)).toBeGreaterThan(100_000_000_000);
    },
  );

  it("is free if it has no content (R-MON-8)", async () => {
    const { response, call } = await answered(style, { usage: usageOf[style](10, 0), text: "" });
    expect(response.status).toBe("completed");
    expect(call.cost?.amountNanos ?? 0n).toBe(0n);
    expect(call.usage).toMatchObject({ inputTokens: 10, outputTokens: 0 });
  });
});
