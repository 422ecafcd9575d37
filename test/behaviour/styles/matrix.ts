/** Clients through a gateway, at one model per vendor style. */
import { afterAll, beforeAll, describe, expect } from "vitest";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { strictChat } from "../../support/upstream/chat-strict.ts";
import { strictGemini } from "../../support/upstream/gemini-strict.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { strictResponses } from "../../support/upstream/responses-strict.ts";
import type { StrictStyle } from "../../support/upstream/strict.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { check, type VendorStyle } from "./checks.ts";
import type { ClientRow } from "./clients/client.ts";

interface Vendor {
  readonly vendor: VendorStyle;
  readonly kind: string;
  readonly dialects: readonly string[] | undefined;
  readonly style: () => StrictStyle;
}

/** The vendors, one per style; the model of each is `m-` and its style. */
export const vendors: readonly Vendor[] = [
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

/** Servers of a file's tests. */
export interface Matrix {
  readonly gateway: Gateway;
  /** A customer's secret. */
  readonly key: string;
  readonly upstream: (vendor: VendorStyle) => Upstream;
}

/**
 * Starts a gateway and its vendors for a file and, at its end, looks whether they saw what no
 * vendor must.
 */
export function useMatrix(): Matrix {
  const upstreams = new Map<VendorStyle, Upstream>();
  let gateway: Gateway;
  let customer: Customer;

  beforeAll(async () => {
    for (const { vendor, style } of vendors) {
      upstreams.set(vendor, await startUpstream({ style: style() }));
    }
    gateway = await startGateway({
      vendors: Object.fromEntries(
        vendors.map(({ vendor, kind, dialects }) => {
          const apiKey = upstreams.get(vendor)?.secret;
          return [vendor, { kind, dialects, baseUrl: baseUrlOf(vendor, upstreams), apiKey }];
        }),
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
    expect([...upstreams.values()].flatMap(({ violations }) => violations)).toEqual([]);
  });

  return {
    get gateway() {
      return gateway;
    },
    get key() {
      return customer.key;
    },
    upstream(vendor) {
      const upstream = upstreams.get(vendor);
      if (upstream === undefined) throw new Error("unreachable");
      return upstream;
    },
  };
}

/** Runs the checks of a file's clients at every vendor style. */
export function checkThroughGateway(rows: readonly ClientRow[]): void {
  const matrix = useMatrix();
  describe.each(rows)("$name", (row) => {
    describe.each(vendors)("at $vendor", ({ vendor }) => {
      check({
        row,
        vendor,
        isGateway: true,
        client: () =>
          row.make({ origin: matrix.gateway.url, key: matrix.key, model: `m-${vendor}` }),
      });
    });
  });
}

function baseUrlOf(vendor: VendorStyle, upstreams: ReadonlyMap<VendorStyle, Upstream>): string {
  const upstream = upstreams.get(vendor);
  const isOpenAI = vendor === "chat" || vendor === "responses";
  return (isOpenAI ? upstream?.baseUrl : upstream?.origin) ?? "";
}
