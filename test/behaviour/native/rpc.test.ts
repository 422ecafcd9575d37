/**
 * Vendors' own interfaces as an RPC: what REST can do, a service can, over the same path of money.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type ExchangeRequestSchema,
  type ExchangeResponse,
  NativeService,
} from "../../../gen/uas/native/v1/native_service_pb.ts";
import { withTransport } from "../rpc/harness.ts";
import type { Customer } from "../../support/gateway.ts";
import { type NativeGateway, startGeminiGateway } from "./gemini-gateway.ts";
import { geminiEvents, geminiUsage } from "./gemini-replies.ts";

let gateway: NativeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  customer = await gateway.customer();
  gateway.vendor.answer(() => ({
    headers: { "content-type": "text/event-stream" },
    body: geminiEvents,
  }));
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

const asked: MessageInitShape<typeof ExchangeRequestSchema> = {
  prefix: "/gemini",
  method: "POST",
  path: "/v1beta/models/gemini-x:streamGenerateContent",
  query: "alt=sse",
  // A caller may send what it likes: only what the table names goes on.
  headers: { authorization: "Bearer leak", cookie: "a=b", "x-api-key": "leak" },
  body: Buffer.from('{"contents":[{"parts":[{"text":"Hi"}]}]}'),
};

function exchange(
  message: typeof asked,
  requestId: string,
  more: Readonly<Record<string, string>> = {},
): Promise<ExchangeResponse[]> {
  return withTransport(gateway.internalUrl, "grpc", (transport) => {
    const usual = { authorization: `Bearer ${customer.key}`, "x-request-id": requestId };
    const headers = { ...usual, ...more };
    const client = createClient(NativeService, transport);
    return Array.fromAsync(client.exchange({ ...asked, ...message }, { headers }));
  });
}

test("the RPC answers with the head, then the vendor's bytes, and is held, charged and recorded like every call", async () => {
  const [head, ...chunks] = await exchange({}, "rpc-1");
  expect(head?.part.case).toBe("head");
  const bytes = chunks.map(({ part }) => (part.case === "chunk" ? part.value : Buffer.of()));
  expect(Buffer.concat(bytes).toString()).toBe(geminiEvents.join(""));
  const call = await gateway.call("rpc-1");
  const { input, output } = geminiUsage;
  expect(call.cost?.amountNanos).toBe(BigInt(input) * 250n + BigInt(output) * 2_000n);
  expect(gateway.vendor.requests[0]?.headers.cookie).toBeUndefined();
});

test("R-VND-1: an undeclared address is NOT_FOUND for every caller", async () => {
  for (const message of [
    { path: "/v1beta/models" },
    { path: "/v1beta/models/gemini-x%3AstreamGenerateContent" },
    { path: "https://elsewhere.test/v1beta/models/gemini-x:streamGenerateContent" },
    { prefix: "/nobody" },
    { prefix: "" },
    { method: "PATCH" },
  ]) {
    await expect(exchange(message, "rpc-2")).rejects.toThrow(/not_found/);
  }
});

test("a query or a header that HTTP would not let through is refused", async () => {
  await expect(exchange({ query: "a=b\r\nx: y" }, "rpc-3")).rejects.toThrow(/invalid_argument/);
  const headers = { "x-goog-api-client": "a\r\nb: c" };
  await expect(exchange({ headers }, "rpc-3")).rejects.toThrow(/invalid_argument/);
});

test("a repetition with the same idempotency key gets the same bytes, and no vendor is called", async () => {
  const bytesOf = (parts: readonly ExchangeResponse[]): string =>
    Buffer.concat(
      parts.map(({ part }) => (part.case === "chunk" ? part.value : Buffer.of())),
    ).toString();
  const repeated = { "idempotency-key": "native" };
  const first = await exchange({}, "first", repeated);
  const count = gateway.vendor.requests.length;
  expect(bytesOf(await exchange({}, "second", repeated))).toBe(bytesOf(first));
  expect(gateway.vendor.requests).toHaveLength(count);
});
