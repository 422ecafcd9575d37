/**
 * The client leaves a vendor that is stopped at once (`on_disconnect: abort`, R-TXT-9, R-MON-11).
 */
import { APIUserAbortError } from "openai";
import { expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { answer, hang } from "../../../support/upstream/behaviour.ts";
import { ask, newRequestId, useGateway } from "../../harness.ts";

const fixture = useGateway();

it("a disconnect in the middle of a stream stops the vendor and records an estimate", async () => {
  const text = ["12345678", "abcdefgh"];
  // Role and two pieces of text, then silence: only the abort can end it.
  fixture.upstream.script(answer({ text, cutAfter: 3, ending: "hang" }));
  const id = newRequestId();
  const stream = await fixture.openai.chat.completions.create(
    { ...ask, stream: true },
    { headers: { "x-request-id": id } },
  );
  let got = "";
  for await (const chunk of stream) {
    got += chunk.choices[0]?.delta.content ?? "";
    if (got.length === 16) break;
  }
  expect(await fixture.upstream.last().left).toBe(true);
  const call = await fixture.gateway.call(id);
  const request = fixture.upstream.last().body.length;
  expect(call).toMatchObject({
    ending: CallEnding.CLIENT_GONE,
    usageSource: UsageSource.ESTIMATED,
    status: 200,
    stream: true,
  });
  expect(call.usage?.outputTokens).toBeGreaterThanOrEqual(4);
  expect(call.usage?.outputTokens).toBeLessThanOrEqual(7);
  expect(call.usage?.inputTokens).toBeLessThanOrEqual(Math.ceil(request / 4));
  const { inputTokens = 0, outputTokens = 0 } = call.usage ?? {};
  expect(call.cost?.amountNanos).toBe(BigInt(inputTokens) * 250n + BigInt(outputTokens) * 2_000n);
});

it("charges the input where the client leaves before the vendor has answered: it was sent (R-MON-11)", async () => {
  fixture.upstream.script(hang);
  const id = newRequestId();
  const leave = new AbortController();
  const running = fixture.openai.chat.completions
    .create(ask, { signal: leave.signal, headers: { "x-request-id": id } })
    .catch((error: unknown) => error);
  const request = await fixture.upstream.request(1);
  leave.abort();
  expect(await running).toBeInstanceOf(APIUserAbortError);
  expect(await request.left).toBe(true);
  const call = await fixture.gateway.call(id);
  expect(call).toMatchObject({
    ending: CallEnding.CLIENT_GONE,
    usageSource: UsageSource.ESTIMATED,
    status: 499,
  });
  const { inputTokens = 0, outputTokens } = call.usage ?? {};
  expect(outputTokens).toBe(0);
  expect(inputTokens).toBeGreaterThan(0);
  expect(call.cost?.amountNanos).toBe(BigInt(inputTokens) * 250n);
});
