/**
 * R-ID-4, R-AUTH-2: a call with a recognised but invalid key is in the log of its account, with the
 * true reason.
 */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Client } from "pg";
import { describe, expect, it } from "vitest";
import { CallEnding, CallOutcome } from "../../../gen/uas/billing/v1/call_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { refusalRecordsMax } from "../../../src/core/limits.ts";
import type { RawReply } from "../../support/raw-http.ts";
import type { Customer } from "../../support/gateway.ts";
import { ask, newRequestId, publicModel, useGateway } from "../harness.ts";

const fixture = useGateway();
const unknownKey = "uas_00000000000000000000000000000000";

/** Reasons that make a key invalid, by their word. */
const ends = {
  disabled: ({ keyId }: Customer) => fixture.gateway.keys.disableKey({ keyId }),
  deleted: ({ keyId }: Customer) => fixture.gateway.keys.deleteKey({ keyId }),
  expired: ({ keyId }: Customer) => expireKey(keyId),
} as const;

const endings = {
  disabled: CallEnding.KEY_DISABLED,
  deleted: CallEnding.KEY_DELETED,
  expired: CallEnding.KEY_EXPIRED,
} as const;

/** Bodies of all routes on which a key begins something. */
const bodies = {
  "/v1/chat/completions": ask,
  "/v1/responses": { model: publicModel, input: "Hello" },
  "/v1/messages": { ...ask, max_tokens: 16 },
  "/v1/embeddings": { model: publicModel, input: "Hello" },
  "/api/ai/tasks": { model: publicModel, params: {} },
} as const;

function sendWith(key: string, path: string, requestId: string): Promise<RawReply> {
  const headers = { authorization: `Bearer ${key}`, "x-request-id": requestId };
  const body = JSON.stringify(bodies[path as keyof typeof bodies] ?? ask);
  return fixture.send(path, { headers, body });
}

describe.each(["disabled", "deleted", "expired"] as const)("a key that is %s", (reason) => {
  it.each(Object.keys(bodies))(
    "a refused key is recorded at %s, and told what an unknown key is told",
    async (path) => {
      const { gateway, upstream } = fixture;
      const customer = await gateway.customer();
      await ends[reason](customer);
      const requestId = newRequestId();
      const told = await sendWith(customer.key, path, requestId);
      const unknown = await sendWith(unknownKey, path, requestId);
      expect(told.status).toBe(401);
      const { date: _date, ...headers } = told.headers;
      expect(unknown.headers).toMatchObject(headers);
      expect(told.body.toString()).toBe(unknown.body.toString());
      expect(await gateway.call(requestId)).toMatchObject({
        accountId: customer.accountId,
        keyId: customer.keyId,
        path,
        status: 401,
        errorCode: "invalid_request",
        ending: endings[reason],
        cost: { amountNanos: 0n },
      });
      const { calls } = await gateway.callLog.listCalls({
        accountId: customer.accountId,
        filter: { outcome: CallOutcome.FAILED, ending: endings[reason] },
      });
      expect(calls.map((call) => call.requestId)).toEqual([requestId]);
      expect(upstream.requests).toHaveLength(0);
    },
  );
});

it("a call through Connect is recorded too, under the name of its RPC", async () => {
  const { gateway } = fixture;
  const customer = await gateway.customer();
  await ends.disabled(customer);
  const requestId = newRequestId();
  const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
  const headers = { authorization: `Bearer ${customer.key}`, "x-request-id": requestId };
  const client = createClient(InferenceService, transport);
  const refused = await client
    .generate({ generation: { model: publicModel } }, { headers })
    .catch((error: unknown) => ConnectError.from(error));
  expect(refused).toMatchObject({ code: Code.Unauthenticated });
  expect(await gateway.call(requestId)).toMatchObject({
    keyId: customer.keyId,
    path: "/uas.inference.v1.InferenceService/Generate",
    ending: CallEnding.KEY_DISABLED,
  });
});

it("what is no call has no record: lists of models, and keys that do not exist", async () => {
  const { gateway } = fixture;
  const customer = await gateway.customer();
  await ends.disabled(customer);
  await fixture.send("/v1/models", {
    method: "GET",
    headers: { authorization: `Bearer ${customer.key}` },
  });
  const unknownId = newRequestId();
  await sendWith(unknownKey, "/v1/chat/completions", unknownId);
  // Records are written in their order: once this one is there, others would be.
  const lastId = newRequestId();
  await sendWith(customer.key, "/v1/chat/completions", lastId);
  await gateway.call(lastId);
  const { calls } = await gateway.callLog.listCalls({ accountId: customer.accountId });
  expect(calls.map((call) => call.requestId)).toEqual([lastId]);
  expect((await gateway.callLog.listCalls({ filter: { requestId: unknownId } })).calls).toEqual([]);
});

it("a client that goes on and on fills no log: so many records a minute, for each key", async () => {
  const { gateway } = fixture;
  const [hammering, other] = [await gateway.customer(), await gateway.customer()];
  await ends.disabled(hammering);
  await ends.disabled(other);
  const requestId = newRequestId();
  for (let count = 0; count < refusalRecordsMax + 5; count++) {
    const { status } = await sendWith(hammering.key, "/v1/chat/completions", requestId);
    expect(status).toBe(401);
  }
  const otherId = newRequestId();
  await sendWith(other.key, "/v1/chat/completions", otherId);
  await gateway.call(otherId);
  const { calls } = await gateway.callLog.listCalls({ filter: { requestId }, pageSize: 100 });
  expect(calls).toHaveLength(refusalRecordsMax);
});

async function expireKey(keyId: string): Promise<void> {
  const client = new Client({ connectionString: fixture.gateway.databaseUrl });
  await client.connect();
  try {
    await client.query("update api_key set expire_time = now() - interval '1 s' where id = $1", [
      keyId,
    ]);
  } finally {
    await client.end();
  }
}
