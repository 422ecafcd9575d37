/**
 * Calls inside the process: the same interceptors, the same errors and the same access as on the
 * network.
 */
import {
  Code,
  ConnectError,
  createClient,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";
import { once } from "node:events";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { ErrorDetailSchema } from "../../../gen/uas/error/v1/error_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { type Caller, callerKey, operator, requestIdKey } from "../../../src/core/caller.ts";
import { ErrorCode, fromRpcError, GatewayError } from "../../../src/core/errors.ts";
import { createAccessCheck } from "../../../src/edge/rpc/access.ts";
import { createDirectTransport } from "../../../src/edge/rpc/direct-transport.ts";
import { createAccess, createErrorMapping, requestId } from "../../../src/edge/rpc/interceptors.ts";
import { serve } from "../../../src/core/contract-rules.ts";
import { bearer, exchangeOf, failureOf, readExchange } from "./harness.ts";

const goodKey = "uas_good";
const caller: Caller = { kind: "key", accountId: "a", keyId: "k", models: undefined };

type Inference = ServiceImpl<typeof InferenceService>;

/** A client of one implementation, behind the interceptors of the network. */
function clientOf(implementation: Partial<Inference>, more: readonly Interceptor[] = []) {
  const log: string[] = [];
  const refused = (): never => {
    throw new Error("not in this test");
  };
  const whole: Inference = {
    exchange: refused,
    countTokens: refused,
    embed: refused,
    rerank: refused,
    moderate: refused,
    complete: refused,
    generate: refused,
    streamGenerate: refused,
    listModels: refused,
    getModel: refused,
    ...implementation,
  };
  // Stands for an edge: by the key it knows the caller before the chain begins.
  const identify: Interceptor = (next) => (request) => {
    const { contextValues, header } = request;
    const isKnown = header.get("authorization") === `Bearer ${goodKey}`;
    if (isKnown) contextValues.set(callerKey, contextValues.get(callerKey) ?? caller);
    return next(request);
  };
  const interceptors = [
    ...more,
    identify,
    requestId,
    createErrorMapping(pino({}, { write: (line: string) => void log.push(line) })),
    createAccess(createAccessCheck([InferenceService])),
  ];
  const transport = createDirectTransport([serve(InferenceService, whole)], interceptors);
  return { transport, client: createClient(InferenceService, transport), log };
}

const headers = bearer(goodKey);
const head = { part: { case: "head" as const, value: { status: 200, headers: {} } } };
const chunk = { part: { case: "chunk" as const, value: Buffer.from("x") } };

describe("the direct transport", () => {
  it("R-AUTH-6: the direct transport admits the same callers as the network, and no others", async () => {
    const { client } = clientOf({ countTokens: () => ({ inputTokens: 3 }) });
    expect((await client.countTokens({}, { headers })).inputTokens).toBe(3);
    for (const [header, contextValues, code] of [
      [{}, undefined, ErrorCode.UNAUTHENTICATED],
      [bearer("uas_bad"), undefined, ErrorCode.UNAUTHENTICATED],
      [{}, createContextValues().set(callerKey, operator), ErrorCode.ACCESS_DENIED],
    ] as const) {
      const call = client.countTokens(
        {},
        { headers: header, ...(contextValues && { contextValues }) },
      );
      expect((await failureOf(call)).told.code).toBe(code);
    }
  });

  it("believes an edge that has named the caller, without a second check", async () => {
    const other: Caller = { ...caller, accountId: "b" };
    const seen: unknown[] = [];
    const { client } = clientOf({
      listModels(_request, { values }) {
        seen.push(values.get(callerKey), values.get(requestIdKey));
        return {};
      },
    });
    const contextValues = createContextValues().set(callerKey, other).set(requestIdKey, "edge");
    await client.listModels({}, { contextValues, headers });
    expect(seen).toEqual([other, "edge"]);
  });

  it("hands context values, headers and response headers through, and makes a request id", async () => {
    const key = createContextKey("");
    let context: HandlerContext | undefined;
    const { client } = clientOf({
      getModel(_request, given) {
        context = given;
        given.responseHeader.set("x-answer", "42");
        given.responseTrailer.set("x-end", "43");
        return { model: { modelKey: "m" } };
      },
    });
    const told: Array<string | null> = [];
    const { model } = await client.getModel(
      { modelKey: "m" },
      {
        headers: { ...headers, "x-request-id": "mine", "x-more": "1" },
        contextValues: createContextValues().set(key, "value"),
        onHeader: (header) => told.push(header.get("x-answer"), header.get("x-request-id")),
        onTrailer: (trailer) => told.push(trailer.get("x-end")),
      },
    );
    expect(model?.$typeName).toBe("uas.inference.v1.Model");
    expect(told).toEqual(["42", "mine", "43"]);
    expect(context?.values.get(key)).toBe("value");
    expect(context?.requestHeader.get("x-more")).toBe("1");
    expect(context).toMatchObject({
      service: InferenceService,
      method: InferenceService.method.getModel,
    });
  });

  it("the direct transport passes the very signal to the implementation, and a requested deadline", async () => {
    const signals: AbortSignal[] = [];
    const { client } = clientOf({
      async *exchange(_request, { signal }) {
        signals.push(signal);
        yield head;
        if (!signal.aborted) await once(signal, "abort");
        throw new GatewayError(ErrorCode.UPSTREAM_TIMEOUT, "aborted");
      },
    });
    const leave = new AbortController();
    const stream = client.exchange(exchangeOf("m"), { headers, signal: leave.signal });
    const parts = stream[Symbol.asyncIterator]();
    await parts.next();
    leave.abort(new Error("left"));
    await expect(parts.next()).rejects.toThrow();
    expect(signals[0]?.reason).toMatchObject({ message: "left" });
    await expect(
      readExchange(client.exchange(exchangeOf("m"), { headers, timeoutMs: 20 })),
    ).rejects.toThrow();
    expect(signals[1]?.aborted).toBe(true);
  });

  it.each(["before the head", "in the middle"] as const)(
    "carries an error as the network does, %s",
    async (when) => {
      const error = new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, "slow down", {
        retryAfterSeconds: 17,
        param: "model",
        metadata: { limit: "5" },
      });
      const { client, log } = clientOf({
        async *exchange() {
          if (when === "in the middle") yield head;
          throw error;
        },
      });
      const { error: rpc, told } = await failureOf(
        readExchange(client.exchange(exchangeOf("m"), { headers })),
      );
      expect(rpc.code).toBe(Code.ResourceExhausted);
      expect(rpc.findDetails(ErrorDetailSchema)).toMatchObject([
        { code: ErrorCode.RATE_LIMIT_EXCEEDED, retryDelay: { seconds: 17n }, param: "model" },
      ]);
      expect(told).toBe(error);
      // From another process only the detail arrives, with the same content.
      const sent = new ConnectError(rpc.rawMessage, rpc.code, undefined, [
        { desc: ErrorDetailSchema, value: rpc.findDetails(ErrorDetailSchema)[0] ?? {} },
      ]);
      const { code, message, param, retryAfterSeconds, metadata } = error;
      expect(fromRpcError(sent)).toMatchObject({
        code,
        message,
        param,
        retryAfterSeconds,
        metadata,
      });
      expect(log).toEqual([]);
    },
  );

  it("reports of an unexpected error only that it happened; the log has it, with the request id", async () => {
    const { client, log } = clientOf({
      getModel: () => {
        throw new TypeError("secret internals");
      },
    });
    const call = client.getModel({}, { headers: { ...headers, "x-request-id": "find-me" } });
    const { error, told } = await failureOf(call);
    expect(told.code).toBe(ErrorCode.INTERNAL_ERROR);
    expect(`${error.message}${told.message}`).not.toContain("secret internals");
    expect(log.join("")).toContain("secret internals");
    expect(log.join("")).toContain("find-me");
  });

  it("the direct transport ends the implementation when its reader returns, so that a call is always settled", async () => {
    let isEnded = false;
    const { transport } = clientOf({
      async *exchange() {
        try {
          yield head;
          for (;;) yield chunk;
        } finally {
          isEnded = true;
        }
      },
    });
    // Not by Connect's client: it keeps a reader's return to itself.
    const { exchange } = InferenceService.method;
    const input = (async function* () {
      yield exchangeOf("m");
    })();
    const { message } = await transport.stream(exchange, undefined, undefined, headers, input);
    for await (const { part } of message) {
      if (part.case === "chunk") break;
    }
    expect(isEnded).toBe(true);
  });

  it("the direct transport runs interceptors in order, the first outermost, once for each call", async () => {
    const seen: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (request) => {
        seen.push(`${name} ${request.method.name}`);
        const response = await next(request);
        seen.push(`${name} back`);
        return response;
      };
    const { client } = clientOf({ listModels: () => ({}) }, [named("a"), named("b")]);
    await client.listModels({}, { headers });
    expect(seen).toEqual(["a ListModels", "b ListModels", "b back", "a back"]);
  });
});
