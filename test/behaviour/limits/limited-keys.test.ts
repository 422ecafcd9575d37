/** R-KEY-4 in every style, as the official SDKs see it: expired keys, suspended accounts. */
import Anthropic, {
  APIError as AnthropicAPIError,
  AuthenticationError as AnthropicAuthenticationError,
  PermissionDeniedError as AnthropicPermissionDeniedError,
} from "@anthropic-ai/sdk";
import {
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  getOption,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { APIError, AuthenticationError, PermissionDeniedError } from "openai";
import { Client } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { BudgetPeriod } from "../../../gen/uas/type/v1/budget_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { Access, access } from "../../../gen/uas/http/v1/http_pb.ts";
import { findMethods } from "../../contract/services.ts";
import type { Customer } from "../../support/gateway.ts";
import { ask, errorOf, expectFree, newRequestId, publicModel, useGateway } from "../harness.ts";
import { changeKnownMs } from "../../support/patience.ts";

const fixture = useGateway();
const unknownKey = "uas_00000000000000000000000000000000";
const anthropicAsk = { ...ask, max_tokens: 16 };

/** Requests of each style's official SDK with a key; resolves to the thrown error. */
const styles = {
  "chat completions": (key: string, headers: Record<string, string>) =>
    fixture.openaiWith(key).chat.completions.create(ask, { headers }),
  responses: (key: string, headers: Record<string, string>) =>
    fixture.openaiWith(key).responses.create({ model: publicModel, input: "Hello" }, { headers }),
  messages: (key: string, headers: Record<string, string>) =>
    new Anthropic({ apiKey: key, baseURL: fixture.gateway.url, maxRetries: 0 }).messages.create(
      anthropicAsk,
      { headers },
    ),
} as const;

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

function isStream(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === "server_streaming";
}

type Style = keyof typeof styles;

const names = Object.keys(styles) as Style[];

/** Members of every error that the SDKs throw. */
interface Thrown {
  readonly error: unknown;
  readonly message: string;
  readonly headers: Headers;
}

async function failureOf(style: Style, key: string, requestId = newRequestId()): Promise<Thrown> {
  return styles[style](key, { "x-request-id": requestId }).then(
    () => expect.unreachable("the call was not refused"),
    (thrown: unknown) => thrown as Thrown,
  );
}

describe.each(names)("%s", (style) => {
  const isMessages = style === "messages";

  it("401: an expired key gets the same answer as an unknown one (R-AUTH-2)", async () => {
    const { gateway } = fixture;
    const { accountId } = fixture.customer;
    const made = await gateway.keys.createKey({ accountId });
    await expireKey(made.key?.keyId ?? "");
    const requestId = newRequestId();
    const expired = await failureOf(style, made.secret, requestId);
    expect(expired).toBeInstanceOf(isMessages ? AnthropicAuthenticationError : AuthenticationError);
    expect(expired.error).toEqual((await failureOf(style, unknownKey, requestId)).error);
    expect(expired.headers.get("x-should-retry")).toBe("false");
  });

  it("402: a call that could exceed its key's limit is answered with the limit and the rest (R-MON-4)", async () => {
    const { gateway } = fixture;
    const { accountId, ...customer } = await gateway.customer();
    const spendLimit = { currencyCode: "USD", amountNanos: 1_000n };
    const { secret } = await gateway.keys.createKey({ accountId, spendLimit });
    const requestId = newRequestId();
    const told = await expectFree(gateway, { accountId, ...customer }, () =>
      failureOf(style, secret, requestId),
    );
    expect(told).toMatchObject({ status: 402 });
    expect(told).toBeInstanceOf(isMessages ? AnthropicAPIError : APIError);
    expect(told.message).toContain("spend limit of 0.000001 USD only 0.000001 USD is left");
    expect(told.headers.get("x-should-retry")).toBe("false");
    expect(await gateway.call(requestId)).toMatchObject({
      status: 402,
      errorCode: "insufficient_balance",
      ending: CallEnding.REFUSED,
    });
    expect(fixture.upstream.requests).toHaveLength(0);
    // The account has enough: another key of it is served.
    await styles[style](customer.key, {});
  });

  it("402: a call that could exceed a budget is answered with the budget and its reset time", async () => {
    const { gateway } = fixture;
    const customer = await gateway.customer();
    const { accountId } = customer;
    const amount = { currencyCode: "USD", amountNanos: 1_000n };
    const timeZone = "Asia/Shanghai";
    const { account } = await gateway.accounts.updateAccount({
      account: { accountId, budgets: [{ period: BudgetPeriod.DAY, amount, timeZone }] },
      updateMask: { paths: ["budgets"] },
    });
    const told = await expectFree(gateway, customer, () => failureOf(style, customer.key));
    expect(told).toMatchObject({ status: 402 });
    const reset = account?.budgets[0]?.resetTime;
    const when = reset && timestampDate(reset).toISOString().replace(".000Z", "Z");
    expect(told.message).toContain(
      `account's budget of 0.000001 USD per day (Asia/Shanghai) only 0.000001 USD is left until it resets at ${when}`,
    );
    expect(told.headers.get("x-should-retry")).toBe("false");
    expect(fixture.upstream.requests).toHaveLength(0);
    await gateway.accounts.updateAccount({
      account: { accountId },
      updateMask: { paths: ["budgets"] },
    });
    await styles[style](customer.key, {});
  });

  it("403: no key of a suspended account gets anywhere, and each call is recorded (R-MON-10)", async () => {
    const { gateway } = fixture;
    const customer = await gateway.customer();
    await gateway.accounts.suspendAccount({ accountId: customer.accountId, reason: "unpaid bill" });
    const requestId = newRequestId();
    const told = await expectFree(gateway, customer, () =>
      failureOf(style, customer.key, requestId),
    );
    expect(told).toBeInstanceOf(
      isMessages ? AnthropicPermissionDeniedError : PermissionDeniedError,
    );
    expect(told.message).toContain("suspended");
    expect(told.message).not.toContain("unpaid");
    expect(told.headers.get("x-should-retry")).toBe("false");
    expect(await gateway.call(requestId)).toMatchObject({
      accountId: customer.accountId,
      ending: CallEnding.REFUSED,
      status: 403,
      errorCode: "access_denied",
    });
    expect(fixture.upstream.requests).toHaveLength(0);
  });
});

/** No request can set an expiry that is past. */
async function expireKey(keyId: string): Promise<void> {
  const client = new Client({ connectionString: fixture.gateway.databaseUrl });
  await client.connect();
  try {
    await client.query("update api_key set expire_time = now() where id = $1", [keyId]);
  } finally {
    await client.end();
  }
}

it("a key's limit counts what its calls cost, and what is left is exact; raising it makes room (R-KEY-4)", async () => {
  const { gateway } = fixture;
  const { accountId } = await gateway.customer();
  const { key, secret } = await gateway.keys.createKey({ accountId });
  const keyId = key?.keyId ?? "";
  const first = newRequestId();
  const status = async (id: string = newRequestId()): Promise<number> => {
    const headers = { authorization: `Bearer ${secret}`, "x-request-id": id };
    return (await fixture.chat(ask, headers)).status;
  };
  const refusedModel = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${secret}` };
    return (await fixture.send(`/v1/models/${publicModel}`, { method: "GET", headers })).status;
  };
  expect(await status(first)).toBe(200);
  const { cost } = await gateway.call(first);
  const spent = async () => (await gateway.keys.getKey({ keyId })).key?.spent;
  expect(await spent()).toEqual(cost);
  const spendLimit = { currencyCode: "USD", amountNanos: (cost?.amountNanos ?? 0n) + 7n };
  const updateMask = { paths: ["spend_limit"] };
  // With a model that there is not, calls are refused for nothing until the limit is known here,
  // too.
  const both = { paths: ["spend_limit", "models"] };
  await gateway.keys.updateKey({ key: { keyId, spendLimit, models: ["none"] }, updateMask: both });
  await expect.poll(() => refusedModel(), { timeout: changeKnownMs, interval: 20 }).toBe(403);
  await gateway.keys.updateKey({ key: { keyId }, updateMask: { paths: ["models"] } });
  await expect.poll(() => status(), { timeout: changeKnownMs, interval: 20 }).toBe(402);
  const reply = await fixture.chat(ask, { authorization: `Bearer ${secret}` });
  expect(errorOf(reply)["message"]).toContain("only 0.000000007 USD is left");
  await gateway.keys.updateKey({ key: { keyId }, updateMask });
  await expect.poll(() => status(), { timeout: changeKnownMs, interval: 20 }).toBe(200);
});

describe("a suspended account", () => {
  let customer: Customer;
  beforeAll(async () => {
    customer = await fixture.gateway.customer();
    const { accountId } = customer;
    await fixture.gateway.accounts.suspendAccount({ accountId, reason: "unpaid" });
  });

  it.each([
    "/v1/models",
    `/v1/models/${publicModel}`,
    "/api/ai/models",
    "/v1/responses/resp_1",
    "/v1/key",
    "/v1/credits",
  ])("a suspended account gets 403 at GET %s", async (path) => {
    const headers = { authorization: `Bearer ${customer.key}` };
    const reply = await fixture.send(path, { method: "GET", headers });
    expect(reply.status).toBe(403);
    expect(reply.body.toString()).toContain("access_denied");
  });

  it("a suspended account reaches no RPC that a key can call", async () => {
    const transport = createConnectTransport({
      baseUrl: fixture.gateway.url,
      httpVersion: "1.1",
    });
    const methods = (await findMethods()).filter(
      ({ method }) => getOption(method, access) === Access.KEY,
    );
    const codes = await Promise.all(
      methods.map(async ({ name, method }) => [name, await codeOf(transport, method)] as const),
    );
    expect(codes.length).toBeGreaterThan(8);
    expect(codes.filter(([, code]) => code !== Code.PermissionDenied)).toEqual([]);
  });

  async function codeOf(
    transport: ReturnType<typeof createConnectTransport>,
    method: DescMethod,
  ): Promise<Code | undefined> {
    const headers = { authorization: `Bearer ${customer.key}` };
    const input = method.name.endsWith("Generate") ? { generation: {} } : {};
    try {
      if (isUnary(method)) await transport.unary(method, undefined, undefined, headers, input);
      if (isStream(method)) {
        const once = (async function* () {
          yield input;
        })();
        const { message } = await transport.stream(method, undefined, undefined, headers, once);
        for await (const _ of message) break;
      }
      return undefined;
    } catch (error) {
      return ConnectError.from(error).code;
    }
  }

  it("a suspended account is served again when it is resumed, and its streams that run are never cut", async () => {
    const { gateway } = fixture;
    const other = await gateway.customer();
    const { accountId } = other;
    const stream = await fixture
      .openaiWith(other.key)
      .chat.completions.create({ ...ask, stream: true });
    await gateway.accounts.suspendAccount({ accountId, reason: "unpaid" });
    let finish: string | null | undefined;
    for await (const chunk of stream) finish = chunk.choices[0]?.finish_reason ?? finish;
    expect(finish).toBe("stop");
    const status = async (): Promise<number> =>
      (await fixture.chat(ask, { authorization: `Bearer ${other.key}` })).status;
    await expect.poll(status, { timeout: changeKnownMs, interval: 20 }).toBe(403);
    await gateway.accounts.resumeAccount({ accountId });
    await expect.poll(status, { timeout: changeKnownMs, interval: 20 }).toBe(200);
  });
});
