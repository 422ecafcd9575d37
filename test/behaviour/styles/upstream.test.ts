/**
 * The strict simulations with the real clients of their style, without a gateway: a failure here is
 * a fault of the simulation, a failure through the gateway is the gateway's.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { strictChat } from "../../support/upstream/chat-strict.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { strictResponses } from "../../support/upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { check } from "./checks.ts";
import type { ClientStyle } from "./clients/client.ts";
import { agentsRows, aiRows, anthropicRows, langchainRows, openaiRows } from "./clients/rows.ts";

const upstreams = new Map<ClientStyle, Upstream>();

beforeAll(async () => {
  upstreams.set("chat", await startUpstream({ style: strictChat() }));
  upstreams.set("responses", await startUpstream({ style: strictResponses() }));
  upstreams.set("messages", await startUpstream({ style: strictMessages() }));
});
afterAll(async () => {
  for (const upstream of upstreams.values()) await upstream.close();
});

const rows = [...openaiRows, ...anthropicRows, ...aiRows, ...langchainRows, ...agentsRows];

describe.each(rows)("$name", (row) => {
  check({
    row,
    vendor: row.style,
    isGateway: false,
    client() {
      const upstream = upstreams.get(row.style);
      if (upstream === undefined) throw new Error("unreachable");
      return row.make({ origin: upstream.origin, key: upstream.secret, model: "vendor-model" });
    },
  });
});

it("saw nothing that a vendor must not see", () => {
  const seen = [...upstreams.values()].flatMap(({ violations }) => violations);
  expect(seen.filter((line) => !line.includes("openai-"))).toEqual([]);
});
