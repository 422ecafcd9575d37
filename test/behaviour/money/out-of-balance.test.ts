/**
 * R-MON-5: a stream that the balance does not cover ends cleanly, in the word of its style, and is
 * charged what could be paid and nothing more.
 */
import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { bearer, withTransport } from "../rpc/harness.ts";
import { priceDefault } from "../../support/gateway.ts";
import { accumulated, type Caller, stopWords } from "../../support/sdk-streams.ts";
import {
  endless,
  endlessInput,
  type EndlessKind,
  endlessPiece,
} from "../../support/upstream/endless.ts";
import { modelOf, useStyleGateway, type VendorStyle } from "../../support/style-gateway.ts";
import { newRequestId } from "../harness.ts";

const fixture = useStyleGateway({ holdOutputTokens: 32 });

/** Price of one output token. */
const tokenNanos = (priceDefault.output ?? 0n) / 1_000_000n;
/** Enough for any input here and some hundred tokens. */
const balanceNanos = 1_000_000n;

/** The most that can be left: the next event did not fit, and a token is paid whole. */
const leftTokensMax = BigInt(Math.ceil(endlessPiece.length / 4)) + 1n;

/**
 * Checks the outcome of a call: the customer has paid the balance, except for less than the cost of
 * the next event.
 */
async function expectUsedUp(accountId: string, requestId: string, told: number | undefined) {
  const call = await fixture.gateway.call(requestId);
  expect(call).toMatchObject({
    ending: CallEnding.OUT_OF_BALANCE,
    errorCode: "insufficient_balance",
    usageSource: UsageSource.ESTIMATED,
    status: 200,
  });
  const { inputTokens = 0, outputTokens = 0 } = call.usage ?? {};
  const cost = call.cost?.amountNanos ?? 0n;
  expect(cost).toBe(BigInt(inputTokens) * 250n + BigInt(outputTokens) * tokenNanos);
  expect(told).toBe(outputTokens);
  const left = balanceNanos - cost;
  expect(left).toBeGreaterThanOrEqual(0n);
  expect(left).toBeLessThan(leftTokensMax * tokenNanos);
  expect(call.held?.amountNanos).toBe(balanceNanos);
  const money = { balance: left, available: left, held: 0n };
  expect(await fixture.gateway.money(accountId)).toEqual(money);
}

/** All that can be open if a style is relayed, and each way into another. */
const rows: ReadonlyArray<readonly [Caller, VendorStyle, EndlessKind]> = [
  ["chat", "chat", "text"],
  ["chat", "chat", "call"],
  ["chat", "chat", "think"],
  ["responses", "responses", "text"],
  ["responses", "responses", "call"],
  ["responses", "responses", "think"],
  ["messages", "messages", "text"],
  ["messages", "messages", "call"],
  ["messages", "messages", "think"],
  ["chat", "messages", "text"],
  ["chat", "responses", "think"],
  ["responses", "chat", "call"],
  ["responses", "gemini", "text"],
  ["messages", "responses", "call"],
  ["messages", "chat", "text"],
];

describe("a stream that runs out of money", () => {
  it.each(rows)(
    "a %s stream from a %s vendor that runs out of money ends in its %s",
    async (caller, vendor, kind) => {
      const upstream = fixture.upstream(vendor);
      upstream.script(endless(vendor, kind));
      const { accountId, key } = await fixture.gateway.customer({ balanceNanos });
      const requestId = newRequestId();
      const got = await accumulated(caller, {
        origin: fixture.gateway.url,
        apiKey: key,
        model: modelOf(vendor),
        text: "go on",
        requestId,
      });
      expect(got.stop).toBe(stopWords[caller]);
      await expectUsedUp(accountId, requestId, got.outputTokens);
      const said = {
        text: got.text,
        call: got.inputs.join("").replace(endlessInput, ""),
        think: got.reasoning,
      }[kind];
      expect(said.replaceAll(endlessPiece, "")).toBe("");
      // All that is charged was delivered.
      // A call has its id and its name too.
      const bytes = said.length + (kind === "call" ? endlessInput.length + 32 : 0);
      expect(Math.ceil(bytes / 4)).toBeGreaterThanOrEqual(got.outputTokens ?? 0);
      expect(await upstream.last().left).toBe(true);
    },
  );

  it("a typed stream that runs out of money ends where the balance ends", async () => {
    fixture.upstream("chat").script(endless("chat", "text"));
    const { accountId, key } = await fixture.gateway.customer({ balanceNanos });
    const requestId = newRequestId();
    const generation = {
      model: modelOf("chat"),
      conversation: {
        turns: [
          {
            role: Role.USER,
            parts: [{ kind: { case: "text", value: { text: "go on" } } as const }],
          },
        ],
      },
    };
    const events = await withTransport(fixture.gateway.internalUrl, "grpc", (transport) =>
      Array.fromAsync(
        createClient(InferenceService, transport).streamGenerate(
          { generation },
          { headers: { ...bearer(key), "x-request-id": requestId } },
        ),
      ),
    );
    const [partEnd, end] = events.slice(-2).map(({ event }) => event?.kind);
    expect(partEnd).toMatchObject({ case: "partEnd", value: { index: 0 } });
    expect(end).toMatchObject({ case: "end", value: { stopReason: StopReason.LENGTH } });
    const told = end?.case === "end" ? end.value.usage?.outputTokens : undefined;
    await expectUsedUp(accountId, requestId, told);
  });
});
