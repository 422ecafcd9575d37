/**
 * The vendor breaks: before the head an error, after it an error event and never a clean end
 * (R-ERR-6).
 */
import { APIError } from "openai";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import {
  answer,
  type AnswerOptions,
  bytes,
  hang,
  reset,
} from "../../../support/upstream/behaviour.ts";
import type { Behaviour } from "../../../support/upstream/exchange.ts";
import { ask, dataOf, errorOf, expectFree, newRequestId, useGateway } from "../../harness.ts";

const fixture = useGateway((upstream) => ({
  vendors: {
    sim: {
      baseUrl: upstream.baseUrl,
      apiKey: upstream.secret,
      timeouts: { connectMs: 500, firstByteMs: 1_000, idleMs: 1_000 },
    },
  },
}));

describe("before the head", () => {
  const half: Behaviour = ({ response }) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
    response.write('{"id":"x","choices":[', () => response.destroy());
  };
  it.each([
    ["reset", reset, 502, "upstream_error"],
    ["a reply that is cut", half, 502, "upstream_error"],
    ["an empty reply", bytes(""), 502, "upstream_error"],
    ["silence", hang, 504, "upstream_timeout"],
  ] as const)(
    "a call that fails before the head costs nothing, and its record says why: %s",
    async (_name, behaviour, status, code) => {
      fixture.upstream.script(behaviour);
      const id = newRequestId();
      const reply = await expectFree(fixture.gateway, fixture.customer, () =>
        fixture.chat(ask, { "x-request-id": id }),
      );
      expect(reply.status).toBe(status);
      expect(errorOf(reply)["code"]).toBe(code);
      expect(reply.headers["x-request-id"]).toBe(id);
      expect(await fixture.gateway.call(id)).toMatchObject({
        ending: CallEnding.UPSTREAM_FAILED,
        status,
        errorCode: code,
      });
    },
  );
});

const cuts: ReadonlyArray<[string, AnswerOptions]> = [
  ["cut between events", { cutAfter: 3, ending: "destroy" }],
  ["cut inside an event", { cutAfter: 3, insideEvent: true, ending: "destroy" }],
  ["reset", { cutAfter: 3, ending: "reset" }],
  ["silent", { cutAfter: 3, ending: "hang" }],
  ["ended without a finish", { cutAfter: 3, ending: "end" }],
  ["ended inside an event", { cutAfter: 3, insideEvent: true, ending: "end" }],
];

describe("after the head", () => {
  it.each(cuts)("a stream that is %s ends with an error event", async (_name, options) => {
    fixture.upstream.script(answer({ text: ["12345678", "abcdefgh"], ...options }));
    const id = newRequestId();
    const reply = await fixture.chat({ ...ask, stream: true }, { "x-request-id": id });
    const data = dataOf(reply.body);
    expect(data).not.toContain("[DONE]");
    const last = JSON.parse(data.at(-1) ?? "") as { error: { code: string } };
    expect(["upstream_error", "upstream_timeout"]).toContain(last.error.code);
    // Every event before it is whole.
    expect(data.slice(0, -1).map((text) => typeof JSON.parse(text))).toEqual([
      "object",
      "object",
      "object",
    ]);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      ending: CallEnding.UPSTREAM_FAILED,
      status: 200,
      errorCode: last.error.code,
    });
    expect(call.usage?.outputTokens).toBeGreaterThanOrEqual(4);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });

  it("makes the SDK throw, not end", async () => {
    fixture.upstream.script(answer({ cutAfter: 3, ending: "destroy" }));
    const read = async (): Promise<void> => {
      const stream = await fixture.openai.chat.completions.create({ ...ask, stream: true });
      for await (const chunk of stream) expect(chunk.choices).toHaveLength(1);
    };
    await expect(read()).rejects.toBeInstanceOf(APIError);
  });

  it("passes the vendor's own error event on and ends there", async () => {
    const errorEvent = { error: { message: "vendor broke", type: "server_error", code: null } };
    fixture.upstream.script(answer({ cutAfter: 2, errorEvent }));
    const id = newRequestId();
    const reply = await fixture.chat({ ...ask, stream: true }, { "x-request-id": id });
    const data = dataOf(reply.body);
    expect(data.filter((text) => text.includes('"error":{'))).toHaveLength(1);
    expect(data).not.toContain("[DONE]");
    expect((await fixture.gateway.call(id)).ending).toBe(CallEnding.UPSTREAM_FAILED);
  });

  it("charges nothing where no content had come (R-MON-8)", async () => {
    fixture.upstream.script(answer({ cutAfter: 1, ending: "destroy" }));
    const id = newRequestId();
    await fixture.chat({ ...ask, stream: true }, { "x-request-id": id });
    expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(0n);
  });
});
