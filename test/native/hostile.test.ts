/** Input that means no good, on all four prefixes: paid work for nothing, and what is somebody else's (R-MON-2, R-VND-3). */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import type { Customer } from "../support/gateway.ts";
import {
  films,
  type Hostile,
  type HostileGateway,
  lengthNames,
  startHostileGateway,
  type VendorName,
} from "./hostile-gateway.ts";

let gateway: HostileGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startHostileGateway();
  customer = await gateway.customer();
});

beforeEach(() => {
  for (const vendor of Object.values(gateway.vendors)) {
    vendor.clear();
    vendor.answer(() => undefined);
  }
});

afterAll(() => gateway.close());

const names = Object.keys(films) as VendorName[];

async function ask({ path, body, headers }: Hostile) {
  const response = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    body,
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      ...headers,
    },
  });
  return { response, status: response.status, text: await response.text() };
}

describe.each(names)("/%s: a length that is none is 400, and named", (name) => {
  const length = lengthNames[name];
  it.each(["-5", "1e309", "-1e309", '"abc5"', '"-5"', '"٥"', '"５"', "true", "[5]", "{}", "1e12"])(
    "%s",
    async (value) => {
      const { status, text } = await ask(films[name](`,"${length}":${value}`));
      expect([status, text]).toEqual([
        400,
        expect.stringContaining(`${length}\\" must be a number`),
      ]);
      expect(gateway.asked()).toBe(0);
    },
  );
});

test("a figure of tokens that no model has is 400 with the range, as in every style", async () => {
  const rows: readonly Hostile[] = [
    {
      path: "/gemini/v1beta/models/gemini-x:generateContent",
      body: '{"contents":[],"generationConfig":{"maxOutputTokens":99999999999}}',
    },
    {
      path: "/gemini/v1beta/interactions",
      body: '{"model":"gemini-x","input":"x","generation_config":{"max_output_tokens":99999999999}}',
    },
    {
      path: "/dashscope/api/v1/services/aigc/text-generation/generation",
      body: '{"model":"qwen-plus","input":{"prompt":"x"},"parameters":{"max_tokens":99999999999}}',
    },
    { path: "/fal/run/fal-ai/flux", body: '{"prompt":"x","num_images":99999999999}' },
    {
      path: "/replicate/v1/models/labs/flux/predictions",
      body: '{"input":{"num_outputs":99999999999}}',
    },
  ];
  for (const row of rows) {
    const { status, text } = await ask(row);
    expect([row.path, status, text]).toEqual([
      row.path,
      400,
      expect.stringContaining("must be a number from 0 to 2147483647"),
    ]);
  }
  expect(gateway.asked()).toBe(0);
});

test("webhook_events_filter: a word that Replicate does not know is refused", async () => {
  const filters = ['["nonsense"]', '"completed"', '["completed",1]', "{}"];
  for (const filter of filters) {
    const body = `{"webhook":"https://example.com/x","webhook_events_filter":${filter},"input":{}}`;
    const { status, text } = await ask({
      path: "/replicate/v1/models/labs/flux/predictions",
      body,
    });
    expect([filter, status, text]).toEqual([
      filter,
      400,
      expect.stringContaining("start, output, logs, completed"),
    ]);
  }
  expect(gateway.asked()).toBe(0);
});
