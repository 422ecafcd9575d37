/** Usage of responses that few vendors report. */
import { expect, test } from "vitest";
import { usageJson, readUsage } from "../../../../src/dialect/responses/usage.ts";
import { relayResponsesReply } from "../../../../src/dialect/responses/relay.ts";
import { decodeResponsesReply } from "../../../../src/dialect/responses/decode-reply.ts";

const usage = {
  input_tokens: 1_000,
  input_tokens_details: {
    cached_tokens: 100,
    cache_write_tokens: 600,
    cache_write_tokens_details: { ttl_30m_tokens: 200, ttl_12h_tokens: 400 },
  },
  output_tokens: 90,
  output_tokens_details: { reasoning_tokens: 10, image_tokens: 70 },
  total_tokens: 1_090,
};
const searches = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    type: "web_search_call",
    id: `ws_${at}`,
    status: "completed",
    action: { type: "search", query: "x" },
  }));
const reply = (num_requests?: unknown) =>
  Buffer.from(
    JSON.stringify({
      id: "resp_1",
      status: "completed",
      model: "m",
      output: searches(3),
      usage,
      ...(num_requests !== undefined && { tool_usage: { web_search: { num_requests } } }),
    }),
  );

const options = { publicModel: "m", hideUsage: false, choices: 1 };

test("tokens of the twelve-hour cache and of images are parts of what was written and produced", () => {
  const read = readUsage(usage);
  expect(read).toMatchObject({ cacheWriteTokens: 600, cacheWrite12hTokens: 400 });
  expect(read).toMatchObject({ outputTokens: 90, reasoningTokens: 10, imageOutputTokens: 70 });
  expect(usageJson(read)).toMatchObject({ input_tokens: 1_000, output_tokens: 90 });
});

test.each([2, 0])("the searches that the vendor bills count, not the items: %i", (billed) => {
  expect(relayResponsesReply(reply(billed), options).usage?.webSearches).toBe(billed);
  expect(decodeResponsesReply(reply(billed)).usage?.webSearches).toBe(billed);
});

test.each([undefined, -1, "2", null])(
  "without a usable count of billed searches the items count: %s",
  (billed) => {
    const { usage: read, units } = relayResponsesReply(reply(billed), options);
    expect(read?.webSearches).toBeUndefined();
    expect(units?.webSearches).toBe(3);
  },
);
