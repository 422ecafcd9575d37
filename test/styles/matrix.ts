/** Clients through a gateway, at one model per vendor style. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Customer, type Gateway, startGateway } from "../support/gateway.ts";
import { strictChat } from "../support/upstream/chat-strict.ts";
import { strictGemini } from "../support/upstream/gemini-strict.ts";
import { strictMessages } from "../support/upstream/messages-strict.ts";
import { strictResponses } from "../support/upstream/responses-strict.ts";
import type { StrictStyle } from "../support/upstream/strict.ts";
import { startUpstream, type Upstream } from "../support/upstream/upstream.ts";
import { check, type VendorStyle } from "./checks.ts";
import type { ClientRow } from "./clients/client.ts";

interface Vendor {
  readonly vendor: VendorStyle;
  readonly kind: string;
  readonly dialects: readonly string[] | undefined;
  readonly style: () => StrictStyle;
}

const vendors: readonly Vendor[] = [
  {
    vendor: "chat",
    kind: "openai-compatible",
    dialects: ["chat-completions"],
    style: () => strictChat(),
  },
  { vendor: "responses", kind: "openai", dialects: ["responses"], style: strictResponses },
  { vendor: "messages", kind: "anthropic", dialects: undefined, style: strictMessages },
  { vendor: "gemini", kind: "gemini", dialects: undefined, style: strictGemini },
];

/** Runs the checks of a file's clients at every vendor style, `m-chat` to `m-gemini`. */
export function checkThroughGateway(rows: readonly ClientRow[]): void {
  const upstreams = new Map<VendorStyle, Upstream>();
  let gateway: Gateway;
  let customer: Customer;

  beforeAll(async () => {
    for (const { vendor, style } of vendors) {
      upstreams.set(vendor, await startUpstream({ style: style() }));
    }
    gateway = await startGateway({
      vendors: Object.fromEntries(
        vendors.map(({ vendor, kind, dialects }) => [
          vendor,
          {
            kind,
            dialects,
            baseUrl: baseUrlOf(vendor, upstreams.get(vendor)),
            apiKey: upstreams.get(vendor)?.secret,
          },
        ]),
      ),
      models: Object.fromEntries(
        vendors.map(({ vendor }) => [
          `m-${vendor}`,
          { routes: [{ vendor, model: "vendor-model" }] },
        ]),
      ),
    });
    customer = await gateway.customer();
  });
  afterAll(async () => {
    await gateway?.close();
    for (const upstream of upstreams.values()) await upstream.close();
  });

  describe.each(rows)("$name", (row) => {
    describe.each(vendors)("at $vendor", ({ vendor }) => {
      check({
        row,
        vendor,
        isGateway: true,
        client: () => row.make({ origin: gateway.url, key: customer.key, model: `m-${vendor}` }),
      });
    });
  });

  it("let nothing reach a vendor that must not", () => {
    expect([...upstreams.values()].flatMap(({ violations }) => violations)).toEqual([]);
  });
}

function baseUrlOf(vendor: VendorStyle, upstream: Upstream | undefined): string {
  const isOpenAI = vendor === "chat" || vendor === "responses";
  return (isOpenAI ? upstream?.baseUrl : upstream?.origin) ?? "";
}
