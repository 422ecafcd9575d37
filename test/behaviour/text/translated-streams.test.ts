/**
 * Streams between two styles that do not end well: the client sees a failure in its own style and
 * no end, the vendor is stopped at once, and what was delivered is charged (R-ERR-6, R-TXT-9).
 */
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { newRequestId, publicModel, useGateway } from "../harness.ts";

const fixture = useGateway();

const rows = [
  {
    path: "/v1/messages",
    body: {
      model: publicModel,
      max_tokens: 64,
      stream: true,
      messages: [{ role: "user", content: "Hi" }],
    },
    error: /^event: error$/m,
    end: "message_stop",
  },
  {
    path: "/v1/responses",
    body: { model: publicModel, stream: true, input: "Hi" },
    error: /^event: (?:error|response\.failed)$/m,
    end: "response.completed",
  },
];

const text = ["12345678", "abcdefgh", "x", "y"];

describe.each(rows)("$path", ({ path, body, error, end }) => {
  it.each([
    ["closed", answer({ text, cutAfter: 3 })],
    ["closed inside an event", answer({ text, cutAfter: 3, insideEvent: true })],
    ["reset", answer({ text, cutAfter: 3, ending: "reset" })],
    ["ended by an error", answer({ text, cutAfter: 3, errorEvent: { message: "no", code: "x" } })],
  ])(
    "a translated stream that is %s by the vendor ends in an error, and is charged for what came",
    async (_, behaviour) => {
      fixture.upstream.script(behaviour);
      const id = newRequestId();
      const reply = await fixture.send(path, {
        headers: { "x-request-id": id },
        body: JSON.stringify(body),
      });
      const got = reply.body.toString();
      expect(got).toContain("abcdefgh");
      expect(got).toMatch(error);
      expect(got).not.toContain(end);
      expect(got).not.toContain("[DONE]");
      const call = await fixture.gateway.call(id);
      expect(call.ending).toBe(CallEnding.UPSTREAM_FAILED);
      expect(call.usage?.outputTokens).toBeGreaterThanOrEqual(4);
      expect(call.cost?.amountNanos).toBeGreaterThan(0n);
    },
  );

  it("a translated stream that its client leaves stops the vendor, and is charged for what came", async () => {
    fixture.upstream.script(answer({ text, cutAfter: 3, ending: "hang" }));
    const [id, leave] = [newRequestId(), new AbortController()];
    const reply = await fetch(`${fixture.gateway.url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${fixture.customer.key}`,
        "content-type": "application/json",
        "x-request-id": id,
      },
      body: JSON.stringify(body),
      signal: leave.signal,
    });
    let got = "";
    const decoder = new TextDecoder();
    try {
      for await (const piece of reply.body ?? []) {
        got += decoder.decode(piece, { stream: true });
        if (got.includes("abcdefgh")) leave.abort();
      }
    } catch (failure) {
      expect(leave.signal.aborted, String(failure)).toBe(true);
    }
    expect(await fixture.upstream.last().left).toBe(true);
    const call = await fixture.gateway.call(id);
    expect(call.ending).toBe(CallEnding.CLIENT_GONE);
    expect(call.usage?.outputTokens).toBeGreaterThanOrEqual(4);
  });

  it("stops a vendor that floods a client which takes nothing", async () => {
    const flood = Array.from({ length: 4_000 }, () => "z".repeat(4_096));
    fixture.upstream.script(answer({ text: flood }));
    const leave = new AbortController();
    const reply = await fetch(`${fixture.gateway.url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${fixture.customer.key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
      signal: leave.signal,
    });
    expect(reply.status).toBe(200);
    await expect.poll(() => fixture.upstream.last().isBlocked).toBe(true);
    expect(fixture.upstream.last().writtenBytes).toBeLessThan(12 * 1024 * 1024);
    leave.abort();
    expect(await fixture.upstream.last().left).toBe(true);
  });
});
