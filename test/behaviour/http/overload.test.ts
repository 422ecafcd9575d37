/** The limit on concurrent calls: beyond it calls are refused at once, and cost nothing. */
import { createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { bearer, withTransport } from "../rpc/harness.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { ask, newRequestId, useGateway } from "../harness.ts";

const limit = 2;
const fixture = useGateway(() => ({ settings: { maxConcurrentCalls: limit } }));

const wires: ReadonlyArray<readonly [path: string, body: object, code: readonly string[]]> = [
  ["/v1/chat/completions", ask, ["error", "code"]],
  ["/v1/responses", { model: ask.model, input: "Hello" }, ["error", "code"]],
  [
    "/v1/messages",
    { model: ask.model, max_tokens: 10, messages: ask.messages },
    ["error", "details", "error_code"],
  ],
];

it("a call beyond the limit is refused in its style with retry-after, unasked and free; when one has ended there is room", async () => {
  const { gateway, upstream, customer } = fixture;
  const { promise: until, resolve: open } = Promise.withResolvers<void>();
  for (let call = 0; call < limit; call++) upstream.script(heldBack(answer(), { part: -1, until }));
  const running = [fixture.chat(ask), fixture.chat(ask)];
  await upstream.request(limit);
  const before = await gateway.money(customer.accountId);
  for (const [path, body, place] of wires) {
    const requestId = newRequestId();
    const refused = await fixture.send(path, {
      headers: { "x-request-id": requestId },
      body: JSON.stringify(body),
    });
    expect(refused.status).toBe(503);
    expect(refused.headers).toMatchObject({ "retry-after": "1", "x-request-id": requestId });
    const told = place.reduce<unknown>(
      (at, name) => (at as Record<string, unknown>)[name],
      JSON.parse(refused.body.toString()),
    );
    expect(told).toBe("service_unavailable");
  }
  await withTransport(gateway.internalUrl, "grpc", async (transport) => {
    const client = createClient(InferenceService, transport);
    const body = Buffer.from(JSON.stringify(ask));
    const request = { dialect: Dialect.CHAT_COMPLETIONS, path: "/v1/chat/completions", body };
    const read = Array.fromAsync(client.exchange(request, { headers: bearer(customer.key) }));
    await expect(read).rejects.toThrow("which is its maximum");
  });
  expect(await gateway.money(customer.accountId)).toEqual(before);
  expect(upstream.requests).toHaveLength(limit);
  open();
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
  await expect.poll(async () => (await fixture.chat(ask)).status).toBe(200);
});
