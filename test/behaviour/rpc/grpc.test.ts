/** The internal listener as `@grpc/grpc-js` sees it. */
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { publicModel } from "../../support/gateway.ts";
import { answer, failure, flood, hang } from "../../support/upstream/behaviour.ts";
import { detailsOf, detailsOfType, GrpcClient, type Message, refusalOf } from "./grpc-client.ts";
import { bearer, demoModel, exchangeOf, operatorToken, useGateway } from "./harness.ts";

const fixture = useGateway();
let client: GrpcClient;
beforeAll(() => {
  client = new GrpcClient(fixture.gateway.internalUrl);
});
afterAll(() => client?.close());

const exchangePath = "/uas.inference.v1.InferenceService/Exchange";
const getAccount = "/uas.account.v1.AccountService/GetAccount";

/** An exchange's request as proto-loader takes it. */
function messageOf(model: string, members: Readonly<Record<string, unknown>> = {}): Message {
  const { path, body } = exchangeOf(model, members);
  return { dialect: "DIALECT_CHAT_COMPLETIONS", path, body };
}

function asKey(requestId?: string): Record<string, string> {
  return { ...bearer(fixture.customer.key), ...(requestId && { "x-request-id": requestId }) };
}

/** Reads to the end: the parts, and the error that ended them. */
async function drain(stream: grpc.ClientReadableStream<Message>) {
  const parts: Message[] = [];
  let error: grpc.ServiceError | undefined;
  let header = new grpc.Metadata();
  stream.on("metadata", (metadata) => (header = metadata));
  stream.on("data", (part: Message) => parts.push(part));
  await new Promise<void>((resolve) => {
    stream.on("error", (cause: grpc.ServiceError) => (error = cause));
    stream.on("status", () => resolve());
  });
  return { parts, error, header };
}

function textOf(parts: readonly Message[]): string {
  return Buffer.concat(
    parts.map(({ chunk }) => (chunk as Buffer | null) ?? Buffer.alloc(0)),
  ).toString();
}

describe("unary calls", () => {
  it("bring their message, and echo the request id", async () => {
    const { accountId } = fixture.customer;
    const metadata = { ...bearer(operatorToken), "x-request-id": "grpc-unary-1" };
    const { message, header } = await client.unary(getAccount, { accountId }, { metadata });
    expect(message["account"]).toMatchObject({ accountId, name: "test" });
    expect(header.get("x-request-id")).toEqual(["grpc-unary-1"]);
  });

  it("of an RPC that does not exist are UNIMPLEMENTED, with what to do", async () => {
    const own = new grpc.Client(
      new URL(fixture.gateway.internalUrl).host,
      grpc.credentials.createInsecure(),
    );
    const bytes = (value: Buffer): Buffer => value;
    const error = await new Promise<grpc.ServiceError | null>((resolve) => {
      own.makeUnaryRequest("/uas.none.v1.None/No", bytes, bytes, Buffer.alloc(0), (cause) =>
        resolve(cause),
      );
    });
    own.close();
    expect([error?.code, error?.details]).toEqual([
      grpc.status.UNIMPLEMENTED,
      "there is no such RPC: list them by server reflection, or see proto/",
    ]);
  });

  it("R-AUTH-6: take the key in x-api-key", async () => {
    const metadata = { "x-api-key": fixture.customer.key };
    const path = "/uas.inference.v1.InferenceService/ListModels";
    const { message } = await client.unary(path, {}, { metadata });
    const keys = (message["models"] as Message[]).map(({ modelKey }) => modelKey);
    expect(keys).toEqual([demoModel, publicModel]);
  });

  it.each([
    [
      "no credential",
      {},
      "AccountService/GetAccount",
      grpc.status.UNAUTHENTICATED,
      ErrorCode.UNAUTHENTICATED,
    ],
    [
      "a wrong key",
      bearer("uas_x"),
      "AccountService/GetAccount",
      grpc.status.UNAUTHENTICATED,
      ErrorCode.UNAUTHENTICATED,
    ],
    [
      "a malformed id",
      bearer(operatorToken),
      "AccountService/GetAccount",
      grpc.status.NOT_FOUND,
      ErrorCode.NOT_FOUND,
    ],
    [
      "an empty name",
      bearer(operatorToken),
      "AccountService/CreateAccount",
      grpc.status.INVALID_ARGUMENT,
      ErrorCode.INVALID_REQUEST,
    ],
  ] as const)(
    "R-ERR-2: fail with a code and exactly one detail: %s",
    async (_what, metadata, method, status, code) => {
      const error = await refusalOf(client.unary(`/uas.account.v1.${method}`, {}, { metadata }));
      expect(error.code).toBe(status);
      expect(detailsOf(error).map((detail) => detail.code)).toEqual([code]);
      expect(error.details).not.toBe("");
    },
  );

  it("R-ID-2: unary calls echo the request id on failures too", async () => {
    const metadata = { "x-request-id": "grpc-refused-1" };
    const error = await refusalOf(client.unary(getAccount, {}, { metadata }));
    expect(error.metadata.get("x-request-id")).toEqual(["grpc-refused-1"]);
  });

  it("say UNIMPLEMENTED of what does not exist", async () => {
    const { internalUrl } = fixture.gateway;
    const other = new grpc.Client(new URL(internalUrl).host, grpc.credentials.createInsecure());
    const bytes = (): Buffer => Buffer.alloc(0);
    for (const path of ["/uas.none.v1.None/No", "/uas.account.v1.AccountService/No"]) {
      const error = await new Promise<grpc.ServiceError | null>((resolve) => {
        other.makeUnaryRequest(path, bytes, bytes, null, resolve);
      });
      expect(error?.code).toBe(grpc.status.UNIMPLEMENTED);
    }
    other.close();
  });
});

describe("Exchange", () => {
  it("streams from a vendor: head first, then the very bytes, settled and recorded", async () => {
    const id = "grpc-exchange-1";
    const input = messageOf(publicModel, { stream: true });
    const { parts, error, header } = await drain(
      client.stream(exchangePath, input, { metadata: asKey(id) }),
    );
    expect(error).toBeUndefined();
    expect(header.get("x-request-id")).toEqual([id]);
    const head = parts[0]?.["head"] as Message;
    expect(head["status"]).toBe(200);
    expect(head["headers"]).toMatchObject({
      "content-type": expect.stringContaining("event-stream"),
    });
    expect(textOf(parts)).toMatch(/Hello[\s\S]*data: \[DONE\]\n\n$/);
    expect(await fixture.gateway.call(id)).toMatchObject({
      ending: CallEnding.COMPLETED,
      status: 200,
      cost: { amountNanos: 11n * 250n + 7n * 2_000n },
      path: "/v1/chat/completions",
    });
  });

  it("answers whole replies, from the demo vendor too", async () => {
    for (const model of [publicModel, demoModel]) {
      const { parts, error } = await drain(
        client.stream(exchangePath, messageOf(model), { metadata: asKey() }),
      );
      expect(error).toBeUndefined();
      const head = parts[0]?.["head"] as { headers: Record<string, string> };
      const text = textOf(parts);
      expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(text)));
      expect(JSON.parse(text)).toMatchObject({ object: "chat.completion", model });
    }
  });

  it("passes a vendor's judgement of the request on as a reply, not as an error", async () => {
    fixture.upstream.script(failure(400, { message: "too hot" }));
    const { parts, error } = await drain(
      client.stream(exchangePath, messageOf(publicModel), { metadata: asKey() }),
    );
    expect(error).toBeUndefined();
    expect(parts[0]?.["head"]).toMatchObject({ status: 400 });
    expect(textOf(parts)).toContain("too hot");
  });

  it.each([
    ["no such model", () => messageOf("none"), grpc.status.NOT_FOUND, ErrorCode.MODEL_NOT_FOUND],
    [
      "no JSON",
      () => ({ ...messageOf("x"), body: Buffer.from("{") }),
      grpc.status.INVALID_ARGUMENT,
      ErrorCode.INVALID_REQUEST,
    ],
    [
      "no dialect",
      () => ({ ...messageOf("x"), dialect: 0 }),
      grpc.status.INVALID_ARGUMENT,
      ErrorCode.INVALID_REQUEST,
    ],
    [
      "another dialect",
      () => ({ ...messageOf("x"), dialect: "DIALECT_PLATFORM" }),
      grpc.status.INVALID_ARGUMENT,
      ErrorCode.INVALID_REQUEST,
    ],
    [
      "a number that is no dialect",
      () => ({ ...messageOf("x"), dialect: 99 }),
      grpc.status.INVALID_ARGUMENT,
      ErrorCode.INVALID_REQUEST,
    ],
    ["an empty message", () => ({}), grpc.status.INVALID_ARGUMENT, ErrorCode.INVALID_REQUEST],
  ] as const)("R-ERR-2: fails before its head: %s", async (_what, input, status, code) => {
    const metadata = asKey();
    const { parts, error } = await drain(client.stream(exchangePath, input(), { metadata }));
    expect(parts).toEqual([]);
    expect(error?.code).toBe(status);
    expect(error && detailsOf(error).map((detail) => detail.code)).toEqual([code]);
    expect(fixture.upstream.requests).toEqual([]);
  });

  it("R-MON-4: says in the detail what was needed and what there is", async () => {
    const poor = await fixture.gateway.customer({ balanceNanos: 1n });
    const metadata = bearer(poor.key);
    const { error } = await drain(
      client.stream(exchangePath, messageOf(publicModel), { metadata }),
    );
    expect(error?.code).toBe(grpc.status.FAILED_PRECONDITION);
    expect(error && detailsOf(error)).toMatchObject([
      { code: ErrorCode.INSUFFICIENT_BALANCE, metadata: { available: "0.000000001" } },
    ]);
    expect(error && detailsOfType(error, ErrorInfoSchema)).toMatchObject([
      { reason: "INSUFFICIENT_BALANCE", domain: "uas", metadata: { available: "0.000000001" } },
    ]);
    expect(error && detailsOfType(error, RetryInfoSchema)).toEqual([]);
  });

  it("hands on the vendor's retry-after in the detail", async () => {
    fixture.upstream.script(failure(429, {}, { "retry-after": "17" }));
    const metadata = asKey();
    const { error } = await drain(
      client.stream(exchangePath, messageOf(publicModel), { metadata }),
    );
    expect(error?.code).toBe(grpc.status.RESOURCE_EXHAUSTED);
    expect(error && detailsOf(error)).toMatchObject([{ retryDelay: { seconds: 17n } }]);
    expect(error && detailsOfType(error, RetryInfoSchema)).toMatchObject([
      { retryDelay: { seconds: 17n } },
    ]);
  });

  it("R-TXT-9: a cancelled call stops the vendor and is recorded as client_gone", async () => {
    fixture.upstream.script(answer({ cutAfter: 3, ending: "hang" }));
    const id = "grpc-cancel-1";
    const input = messageOf(publicModel, { stream: true });
    const stream = client.stream(exchangePath, input, { metadata: asKey(id) });
    const ended = drain(stream);
    await new Promise<void>((resolve) => {
      stream.on("data", (part: Message) => {
        if (textOf([part]).includes("there")) resolve();
      });
    });
    stream.cancel();
    expect((await ended).error?.code).toBe(grpc.status.CANCELLED);
    expect(await fixture.upstream.last().left).toBe(true);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ ending: CallEnding.CLIENT_GONE, status: 200 });
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });

  it("R-MON-2: a reader that takes nothing more and then leaves is recorded and settled too", async () => {
    fixture.upstream.script(flood(64 * 1024 * 1024));
    const id = "grpc-unread-1";
    const input = messageOf(publicModel, { stream: true });
    const stream = client.stream(exchangePath, input, { metadata: asKey(id) });
    const ended = new Promise((resolve) => stream.once("error", resolve));
    await expect.poll(() => fixture.upstream.requests[0]?.isBlocked).toBe(true);
    stream.cancel();
    await ended;
    expect(await fixture.upstream.last().left).toBe(true);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ ending: CallEnding.CLIENT_GONE, status: 200 });
  });

  it("ends at its deadline, stops the vendor, and costs the input before the first content (R-MON-11)", async () => {
    fixture.upstream.script(hang);
    const id = "grpc-deadline-1";
    const { error } = await drain(
      client.stream(exchangePath, messageOf(publicModel), { metadata: asKey(id), timeoutMs: 300 }),
    );
    expect(error?.code).toBe(grpc.status.DEADLINE_EXCEEDED);
    expect(await (await fixture.upstream.request(1)).left).toBe(true);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ ending: CallEnding.CLIENT_GONE, status: 499 });
    expect(call.usage?.outputTokens).toBe(0);
    expect(call.cost?.amountNanos).toBe(BigInt(call.usage?.inputTokens ?? 0) * 250n);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });
});
