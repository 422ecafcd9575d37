/**
 * A gateway in front of one strict vendor of each style, known under two names: one whose work is
 * aborted when a client leaves, and one whose replies are drained.
 */
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { type Gateway, startGateway } from "./gateway.ts";
import { strictChat } from "./upstream/chat-strict.ts";
import { strictGemini } from "./upstream/gemini-strict.ts";
import { strictMessages } from "./upstream/messages-strict.ts";
import { strictResponses } from "./upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "./upstream/upstream.ts";

/** A style that vendors speak. */
export type VendorStyle = "chat" | "responses" | "messages" | "gemini";

export const vendorStyles = ["chat", "responses", "messages", "gemini"] as const;

/** Handling of a vendor's work when the client disconnects. */
export type Policy = "abort" | "drain";

const kinds = {
  chat: { kind: "openai-compatible", dialects: ["chat-completions"], style: () => strictChat() },
  responses: { kind: "openai", dialects: ["responses"], style: strictResponses },
  messages: { kind: "anthropic", dialects: undefined, style: strictMessages },
  gemini: { kind: "gemini", dialects: undefined, style: strictGemini },
} as const;

/** Ready from `beforeAll` on. */
export interface StyleGateway {
  readonly gateway: Gateway;
  readonly upstream: (style: VendorStyle) => Upstream;
}

/** A vendor that waits for the test is not silent, however slow the machine is. */
const timeouts = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000 };

/** The model of a vendor. */
export function modelOf(style: VendorStyle, policy: Policy = "abort"): string {
  return `m-${style}-${policy}`;
}

/** Registers the gateway's start and end for a test file; the end checks books, holds and leaks. */
export function useStyleGateway({ holdOutputTokens = 2_048 } = {}): StyleGateway {
  const upstreams = new Map<VendorStyle, Upstream>();
  const known = (style: VendorStyle): Upstream => upstreams.get(style) as Upstream;
  const ways = vendorStyles.flatMap((style) =>
    (["abort", "drain"] as const).map((policy) => ({ style, policy })),
  );
  let gateway: Gateway;
  beforeAll(async () => {
    for (const style of vendorStyles) {
      upstreams.set(style, await startUpstream({ style: kinds[style].style() }));
    }
    gateway = await startGateway({
      vendors: Object.fromEntries(
        ways.map(({ style, policy }) => {
          const { baseUrl, origin, secret: apiKey } = known(style);
          const { kind, dialects } = kinds[style];
          const isBare = style === "messages" || style === "gemini";
          const address = isBare ? origin : baseUrl;
          const vendor = { kind, dialects, apiKey, baseUrl: address, onDisconnect: policy };
          return [`${style}-${policy}`, { ...vendor, timeouts }];
        }),
      ),
      models: Object.fromEntries(
        ways.map(({ style, policy }) => {
          const routes = [{ vendor: `${style}-${policy}`, model: "vendor-model" }];
          return [modelOf(style, policy), { routes, holdOutputTokens }];
        }),
      ),
    });
  });
  beforeEach(() => {
    for (const upstream of upstreams.values()) upstream.clear();
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
    upstream: known,
  };
}
