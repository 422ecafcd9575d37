/** Request ids on every text route: R-ID-1 to R-ID-6. */
import { describe, expect, it } from "vitest";
import { answer, failure } from "../../support/upstream/behaviour.ts";
import { ask, newRequestId, useGateway } from "../harness.ts";

const fixture = useGateway();
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function echoed(headers: Readonly<Record<string, string>>): Promise<string | undefined> {
  return (await fixture.chat(ask, headers)).headers["x-request-id"];
}

/** The statuses of the log's lines about requests with an id. */
function loggedStatuses(id: string): unknown[] {
  const lines = fixture.gateway.log.map((line) => JSON.parse(line) as Record<string, unknown>);
  return lines.filter((line) => line["requestId"] === id).map((line) => line["status"]);
}

describe("precedence (R-ID-1)", () => {
  const [first, second] = [newRequestId(), newRequestId()];
  it.each([
    ["x-request-id before request-id", { "x-request-id": first, "request-id": second }, first],
    ["request-id alone", { "request-id": second }, second],
    ["a malformed one is skipped", { "x-request-id": "two words", "request-id": second }, second],
    ["an empty one is skipped", { "x-request-id": "", "request-id": second }, second],
    ["256 characters", { "x-request-id": "a".repeat(256) }, "a".repeat(256)],
    ["every visible character", { "x-request-id": visible() }, visible()],
  ])("the request id is taken in order of precedence: %s", async (_name, headers, expected) => {
    expect(await echoed(headers)).toBe(expected);
  });

  it.each([
    ["none", {}],
    ["257 characters", { "x-request-id": "a".repeat(257) }],
    ["not ASCII", { "x-request-id": "é" }],
    ["a tab inside", { "x-request-id": "a\tb" }],
  ])("a request id is made where the client sends %s", async (_name, headers) => {
    expect(await echoed(headers)).toMatch(uuid);
  });

  it("does not read the body outside of tasks", async () => {
    const reply = await fixture.chat({ ...ask, requestContext: { request_id: "from-the-body" } });
    expect(reply.headers["x-request-id"]).toMatch(uuid);
  });
});

describe("echo (R-ID-2)", () => {
  it("the request id is echoed on errors of every kind", async () => {
    const id = newRequestId();
    const headers = { "x-request-id": id };
    const body = JSON.stringify(ask);
    fixture.upstream.script(failure(500));
    const replies = [
      await fixture.send("/v1/chat/completions", { headers, body }),
      await fixture.send("/v1/chat/completions", { headers, body: "{" }),
      await fixture.send("/v1/chat/completions", {
        headers: { ...headers, authorization: "" },
        body,
      }),
      await fixture.send("/v1/chat/completions", {
        headers: { ...headers, "content-type": "x/y" },
        body,
      }),
      await fixture.send("/v1/chat/completions", { headers, method: "GET" }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([502, 400, 401, 415, 405]);
    expect(replies.map((reply) => reply.headers["x-request-id"])).toEqual(replies.map(() => id));
    // Requests that were refused before the key was known have no call record, only a log line.
    await expect.poll(() => loggedStatuses(id)).toEqual(expect.arrayContaining([401, 405, 415]));
  });

  it("the request id is echoed in the head of a stream, whatever becomes of it", async () => {
    for (const options of [{}, { cutAfter: 1, ending: "destroy" as const }]) {
      fixture.upstream.script(answer(options));
      const id = newRequestId();
      const reply = await fixture.chat({ ...ask, stream: true }, { "x-request-id": id });
      expect(reply.headers["x-request-id"]).toBe(id);
      await fixture.gateway.call(id);
    }
  });
});

it("the client's request id never goes to the vendor, and the vendor's never to the client (R-ID-5)", async () => {
  const id = newRequestId();
  await echoed({ "x-request-id": id });
  expect(fixture.upstream.last().rawHeaders).not.toContain(id);
});

it("a call without a request id of the client's own is found by the one that was made (R-ID-4)", async () => {
  const id = await echoed({});
  expect((await fixture.gateway.call(id ?? "")).requestId).toBe(id);
});

it("a request id is looked up within the account (R-ID-6)", async () => {
  const other = await fixture.gateway.customer();
  const id = newRequestId();
  await echoed({ "x-request-id": id });
  await fixture.gateway.call(id);
  const { calls } = await fixture.gateway.callLog.listCalls({
    filter: { requestId: id },
    accountId: other.accountId,
  });
  expect(calls).toEqual([]);
});

function visible(): string {
  return Array.from({ length: 0x7e - 0x20 }, (_, i) => String.fromCharCode(0x21 + i)).join("");
}
