/**
 * A gateway as internal callers see it: an operator token, a simulated vendor, clients of every
 * protocol.
 */
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type ExchangeRequest,
  ExchangeRequestSchema,
  type ExchangeResponse,
  InferenceService,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { fromRpcError, type GatewayError } from "../../../src/core/errors.ts";
import {
  type Customer,
  type Gateway,
  type GatewayOptions,
  publicModel,
  startGateway,
} from "../../support/gateway.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";

/** Where the contract is. */
export const protoDir = join(import.meta.dirname, "../../../proto");

/** Makes its bearer an operator, on the internal listener only. */
export const operatorToken = "operator-canary-1f0e5a";

/** The demo vendor's model that answers at once. */
export const demoModel = "demo/instant";

/** Ready from `beforeAll` on. */
export interface Fixture {
  gateway: Gateway;
  upstream: Upstream;
  customer: Customer;
}

/** Registers the gateway's start and end for a test file; the end checks books, holds and leaks. */
export function useGateway(settings: GatewayOptions["settings"] = { operatorToken }): Fixture {
  const fixture = {} as Fixture;
  beforeAll(async () => {
    fixture.upstream = await startUpstream();
    const { baseUrl, secret } = fixture.upstream;
    fixture.gateway = await startGateway({
      vendors: { sim: { baseUrl, apiKey: secret }, demo: { baseUrl: "", kind: "demo" } },
      models: {
        [publicModel]: {},
        [demoModel]: { routes: [{ vendor: "demo", model: "instant" }] },
      },
      ...(settings && { settings }),
    });
    fixture.customer = await fixture.gateway.customer();
  });
  beforeEach(() => fixture.upstream.clear());
  afterAll(async () => {
    await fixture.gateway?.close();
    await fixture.upstream?.close();
    expect(fixture.upstream.violations).toEqual([]);
  });
  return fixture;
}

/** A protocol that clients speak. */
export type Protocol = "connect" | "connect-h2" | "grpc" | "grpc-web";

/** A transport for the length of `work`. */
export async function withTransport<T>(
  baseUrl: string,
  protocol: Protocol,
  work: (transport: Transport) => Promise<T>,
): Promise<T> {
  const sessionManager = new Http2SessionManager(baseUrl);
  try {
    return await work(createTransport(baseUrl, protocol, sessionManager));
  } finally {
    sessionManager.abort();
  }
}

function createTransport(
  baseUrl: string,
  protocol: Protocol,
  sessionManager: Http2SessionManager,
): Transport {
  if (protocol === "grpc") return createGrpcTransport({ baseUrl, sessionManager });
  if (protocol === "connect-h2") {
    return createConnectTransport({ baseUrl, httpVersion: "2", sessionManager });
  }
  // A connection for each call: none is left over when the test ends.
  const options = { baseUrl, httpVersion: "1.1", nodeOptions: { agent: false } } as const;
  return protocol === "grpc-web"
    ? createGrpcWebTransport(options)
    : createConnectTransport(options);
}

/** Headers with a bearer. */
export function bearer(secret: string): { readonly authorization: string } {
  return { authorization: `Bearer ${secret}` };
}

/** A chat completion as an internal caller asks for it. */
export function exchangeOf(
  model: string,
  { stream = false, ...more }: Readonly<Record<string, unknown>> = {},
): ExchangeRequest {
  const messages = [{ role: "user", content: "Say hello." }];
  return create(ExchangeRequestSchema, {
    dialect: Dialect.CHAT_COMPLETIONS,
    path: "/v1/chat/completions",
    body: Buffer.from(JSON.stringify({ model, messages, stream, ...more })),
  });
}

/** Result of an exchange. */
export interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Reads an exchange to its end; the head comes first and once. */
export async function readExchange(parts: AsyncIterable<ExchangeResponse>): Promise<Exchanged> {
  const all = await Array.fromAsync(parts, ({ part }) => part);
  const [first, ...rest] = all;
  if (first?.case !== "head") throw new Error("no head came first");
  const chunks = rest.map((part) => {
    if (part.case !== "chunk") throw new Error(`another part: ${part.case}`);
    expect(part.value.length).toBeGreaterThan(0);
    return part.value;
  });
  const { status, headers } = first.value;
  return { status, headers, body: Buffer.concat(chunks).toString() };
}

/** A client of inference. */
export function inferenceOf(transport: Transport) {
  return createClient(InferenceService, transport);
}

/** Returns the failure of a call from its detail. Throws if the call succeeds. */
export async function failureOf(
  call: Promise<unknown>,
): Promise<{ readonly error: ConnectError; readonly told: GatewayError }> {
  try {
    await call;
  } catch (cause) {
    const error = ConnectError.from(cause);
    return { error, told: fromRpcError(error) };
  }
  throw new Error("the call did not fail");
}
