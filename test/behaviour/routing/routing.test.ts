/**
 * Routing as callers see it: credentials, failover before the first content, affinity, preferences,
 * fallback models.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { CredentialConfig } from "../../../src/config/config.ts";
import { retryDefault } from "../../../src/config/routing.ts";
import { newRequestId, useGateway } from "../harness.ts";
import type { RawReply } from "../../support/raw-http.ts";
import {
  beginsStream,
  completes,
  refuses,
  type RoutingVendor,
  startVendor,
  type VendorAnswer,
} from "../../support/routing-vendor.ts";

const vendors: { a?: RoutingVendor; b?: RoutingVendor } = {};
const [a, b] = [() => vendors.a as RoutingVendor, () => vendors.b as RoutingVendor];
beforeAll(async () => {
  vendors.a = await startVendor();
  vendors.b = await startVendor();
});
afterAll(async () => {
  await a().close();
  await b().close();
});
beforeEach(() => {
  for (const vendor of [a(), b()]) {
    vendor.requests.length = 0;
    vendor.answer = completes;
  }
});

const credential = (name: string, weight = 1): CredentialConfig => ({
  ...{ name, apiKey: `sk-${name}`, weight, priority: 0 },
});

const patient = { connectMs: 2_000, firstByteMs: 5_000, idleMs: 5_000 };
const usd = 1_000_000_000n;
const price = { input: usd, output: usd, cachedInput: undefined, cacheWrite: undefined };
const noUnits = { image: undefined, second: undefined, request: undefined };

const fixture = useGateway(() => {
  const { baseUrl } = a();
  const other = b().baseUrl;
  const two = (vendor: string) => ({
    routes: [
      { vendor, model: "x" },
      { vendor: "b", model: "y" },
    ],
  });
  return {
    vendors: {
      weighted: {
        baseUrl,
        credentials: [credential("k70", 70), credential("k25", 25), credential("k5", 5)],
      },
      pool: { baseUrl, credentials: [credential("p1"), credential("p2"), credential("p3")] },
      revoked: { baseUrl, credentials: [credential("r1"), credential("r2"), credential("r3")] },
      silent: { baseUrl, apiKey: "sk-silent", timeouts: { ...patient, firstContentMs: 200 } },
      prelude: { baseUrl, apiKey: "sk-prelude", timeouts: { ...patient, firstContentMs: 200 } },
      cut: { baseUrl, apiKey: "sk-cut" },
      dead: { baseUrl, apiKey: "sk-dead" },
      alone: { baseUrl, apiKey: "sk-alone" },
      again: { baseUrl, apiKey: "sk-again" },
      wait: { baseUrl, apiKey: "sk-wait" },
      small: { baseUrl, apiKey: "sk-small" },
      last: {
        baseUrl,
        credentials: [credential("l1"), { ...credential("l2"), priority: 1 }],
      },
      first: { baseUrl, apiKey: "sk-first" },
      b: { baseUrl: other, apiKey: "sk-b" },
    },
    models: {
      weighted: { routes: [{ vendor: "weighted", model: "x" }] },
      pool: { routes: [{ vendor: "pool", model: "x" }], retry: retryDefault },
      revoked: { routes: [{ vendor: "revoked", model: "x" }], retry: retryDefault },
      ...Object.fromEntries(
        ["silent", "prelude", "cut", "dead", "again", "wait", "first", "last"].map((name) => [
          name,
          two(name),
        ]),
      ),
      alone: { routes: [{ vendor: "alone", model: "x" }] },
      small: {
        routes: [
          { vendor: "small", model: "x", maxContext: 1_000 },
          { vendor: "b", model: "y" },
        ],
      },
      replaced: {
        ...{ routes: [{ vendor: "alone", model: "gone" }], fallbackModels: ["cheaper"] },
        retry: { attempts: 1, withinMs: 1 },
      },
      ...Object.fromEntries(
        ["doomed", "short", "begun"].map((model) => [
          model,
          { routes: [{ vendor: "alone", model }], fallbackModels: ["cheaper"] },
        ]),
      ),
      cheaper: {
        routes: [{ vendor: "b", model: "y" }],
        price: { ...price, ...noUnits, input: 2n * usd, output: 2n * usd },
      },
    },
  };
});

const turn = (role: string, content: string) => ({ role, content });
const ask = (model: string, more: object = {}) => ({
  ...{ model, messages: [turn("user", "Say hello.")] },
  ...more,
});

async function chat(
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawReply> {
  return fixture.chat(body, headers);
}

describe("credentials", () => {
  it("share the calls by their weights", async () => {
    const total = 400;
    for (let at = 0; at < total; at += 40) {
      const messagesOf = (index: number) => [turn("user", `Question ${at + index}?`)];
      await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          chat({ model: "weighted", messages: messagesOf(index) }),
        ),
      );
    }
    const counts = a().countByKey();
    // More than five standard deviations of 400 draws.
    expect(Math.abs((counts["sk-k70"] ?? 0) / total - 0.7)).toBeLessThan(0.12);
    expect(Math.abs((counts["sk-k25"] ?? 0) / total - 0.25)).toBeLessThan(0.12);
  });

  it("that are revoked under load cost no customer an error", async () => {
    a().answer = (request) => (request.key === "sk-r2" ? refuses(401) : completes)(request);
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        chat({ model: "revoked", messages: [turn("user", `call ${at}`)] }),
      ),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    a().requests.length = 0;
    for (let at = 0; at < 10; at++) await chat(ask("revoked"));
    expect(a().countByKey()["sk-r2"]).toBeUndefined();
  });
});

describe("failover before the first content (R-RTE-2)", () => {
  const never: VendorAnswer = ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const timer = setInterval(() => response.write(": keep-alive\n\n"), 20);
    response.on("close", () => clearInterval(timer));
  };

  it.each([
    ["silent", "sends keep-alives only", never],
    ["prelude", "stops after its first event", beginsStream],
    [
      "cut",
      "is cut before content",
      ({ response, model }) => {
        beginsStream({ response, model });
        setImmediate(() => response.destroy());
      },
    ],
  ] as readonly (readonly [string, string, VendorAnswer])[])(
    "%s: a stream that %s is served by the next route, and charged once",
    async (model, _what, answer) => {
      a().answer = answer;
      const id = newRequestId();
      const reply = await chat(ask(model, { stream: true }), { "x-request-id": id });
      expect(reply.status).toBe(200);
      expect(reply.body.toString()).toContain("[DONE]");
      expect(reply.headers["x-uas-route"]).toBe("b/y");
      const call = await fixture.gateway.call(id);
      expect(call).toMatchObject({ vendor: "b", errorCode: "" });
      expect(call.attempts.length).toBeGreaterThan(0);
      expect(call.attempts.every(({ vendor }) => vendor === model)).toBe(true);
      expect(call.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    },
  );

  it("a preferred route is tried once more after a single 500", async () => {
    let count = 0;
    a().answer = (request) => (count++ === 0 ? refuses(500) : completes)(request);
    const reply = await chat(ask("again"));
    expect([reply.status, reply.headers["x-uas-route"]]).toEqual([200, "again/x"]);
    expect(b().requests).toHaveLength(0);
  });

  it.each([
    ["a retry-after of at most 2 s is waited for", "10", "wait/x"],
    ["a longer one is not", "2001", "b/y"],
  ])("before the next route is tried, %s", async (_name, retryAfterMs, route) => {
    let count = 0;
    const limited = refuses(429, { "retry-after-ms": retryAfterMs });
    a().answer = (request) => (count++ === 0 ? limited : completes)(request);
    // The pause of an earlier 429 is over.
    await expect
      .poll(async () => {
        count = 0;
        return (await chat(ask("wait"))).headers["x-uas-route"];
      })
      .toBe(route);
  });

  it("a backup is tried although a refused credential and a failure have used all attempts but one", async () => {
    a().answer = (request) => refuses(request.key === "sk-l1" ? 401 : 503)(request);
    const reply = await chat(ask("last"));
    expect([reply.status, reply.headers["x-uas-route"]]).toEqual([200, "b/y"]);
    expect(a().requests.map(({ key }) => key)).toEqual(["sk-l1", "sk-l2"]);
  });

  it("a dead vendor gets five calls, then one probe for each cooldown", async () => {
    a().answer = ({ response }) => response.destroy();
    for (let at = 0; at < 20; at++) expect((await chat(ask("dead"))).status).toBe(200);
    // The first failure is repeated once.
    expect(a().requests.length).toBeLessThanOrEqual(6);
    expect(b().requests).toHaveLength(20);
  });

  it("a model with a single route keeps trying", async () => {
    a().answer = refuses(500);
    for (let at = 0; at < 8; at++) expect((await chat(ask("alone"))).status).toBe(502);
    a().answer = completes;
    expect((await chat(ask("alone"))).status).toBe(200);
  });

  it("a request that is too long for a route goes to one that takes it", async () => {
    const long = { model: "small", messages: [turn("user", "word ".repeat(2_000))] };
    expect((await chat(long)).headers["x-uas-route"]).toBe("b/y");
    expect((await chat(ask("small"))).headers["x-uas-route"]).toBe("small/x");
    a().answer = refuses(400, {}, "context_length_exceeded");
    expect((await chat(ask("small"))).headers["x-uas-route"]).toBe("b/y");
  });
});

describe("session affinity", () => {
  it("keeps conversations with their credential, and apart from others", async () => {
    const conversations = Array.from({ length: 30 }, (_, index) => index);
    const keys = await Promise.all(
      conversations.map(async (index) => {
        const messages = [turn("system", "Be brief."), turn("user", `Question ${index}?`)];
        const used = new Set<string>();
        for (let at = 0; at < 4; at++) {
          await chat({ model: "pool", messages });
          const mine = a().requests.filter(({ body }) =>
            JSON.stringify(body).includes(`"Question ${index}?"`),
          );
          used.add(mine.at(-1)?.key ?? "");
          messages.push(turn("assistant", "Hello"), turn("user", `More ${at}?`));
        }
        return used;
      }),
    );
    expect(keys.map(({ size }) => size)).toEqual(conversations.map(() => 1));
    expect(new Set(keys.flatMap((used) => [...used])).size).toBe(3);
  });

  it("follows the client's own id, and not that of another account", async () => {
    const session = { prompt_cache_key: "session-1" };
    for (let at = 0; at < 6; at++) await chat(ask("pool", session));
    expect(Object.keys(a().countByKey())).toHaveLength(1);
    const [mine] = Object.keys(a().countByKey());
    a().requests.length = 0;
    const used = new Set<string>();
    for (let at = 0; at < 12; at++) {
      const { key } = await fixture.gateway.customer();
      await chat(ask("pool", session), { authorization: `Bearer ${key}` });
      used.add(a().requests.at(-1)?.key ?? "");
    }
    expect(used.size).toBeGreaterThan(1);
    expect(used).toContain(mine);
  });

  it("moves within the same request while its credential fails, and comes back after that", async () => {
    const session = { prompt_cache_key: "session-2" };
    await chat(ask("pool", session));
    const [first] = Object.keys(a().countByKey());
    a().answer = (request) => (request.key === first ? refuses(429) : completes)(request);
    expect((await chat(ask("pool", session))).status).toBe(200);
    expect(a().requests.at(-1)?.key).not.toBe(first);
    a().answer = completes;
    const lastKey = async () => {
      await chat(ask("pool", session));
      return a().requests.at(-1)?.key;
    };
    await expect.poll(lastKey, { timeout: 10_000 }).toBe(first);
  });
});

describe("routing preferences", () => {
  const route = async (provider: object, header = false): Promise<unknown> => {
    const preferences = JSON.stringify(provider);
    const reply = header
      ? await chat(ask("first"), { "x-uas-route": preferences })
      : await chat(ask("first", { provider }));
    return reply.headers["x-uas-route"] ?? reply.status;
  };

  it.each([
    [{}, "first/x"],
    [{ only: ["b"] }, "b/y"],
    [{ ignore: ["first"] }, "b/y"],
    [{ order: ["b/y"] }, "b/y"],
    [{ order: ["first", "b"] }, "first/x"],
    [{ only: ["first", "b"], ignore: ["first/x"] }, "b/y"],
    [{ max_price: { prompt: 100, completion: "100" } }, "first/x"],
  ])(
    "the routing preferences %j in the body or the header choose %s",
    async (preferences, expected) => {
      expect(await route(preferences)).toBe(expected);
      expect(await route(preferences, true)).toBe(expected);
    },
  );

  it("is taken out of the body before the vendor sees it", async () => {
    await chat(ask("first", { provider: { only: ["first"] }, models: [], user: "u" }));
    expect(a().requests[0]?.body).toEqual({ ...ask("x"), user: "u" });
  });

  it("with allow_fallbacks: false only one route is tried", async () => {
    a().answer = refuses(500);
    const reply = await chat(ask("first", { provider: { allow_fallbacks: false } }));
    expect(reply.status).toBe(502);
    expect([a().requests.length, b().requests.length]).toEqual([1, 0]);
  });

  it.each([
    [{ onyl: ["b"] }, "provider.onyl is not known"],
    [{ only: "b" }, "provider.only must be a list"],
    [{ sort: "speed" }, "provider.sort must be one of price, latency, throughput"],
    [{ allow_fallbacks: "no" }, "provider.allow_fallbacks must be true or false"],
    [{ max_price: { prompt: -1 } }, "provider.max_price.prompt must be US dollars"],
    [{ only: ["nobody"] }, "No route of the model fits"],
    [{ max_price: { prompt: 0.01 } }, "the cheapest is `first`"],
    [{ max_price: { image: 1 } }, "provider.max_price.image is not known"],
    [{ order: ["nobody"], allow_fallbacks: false }, "No route of the model fits"],
    ["fast", "provider must be a JSON object"],
  ])(
    "the routing preferences %j are refused, and nothing is sent or held",
    async (provider, message) => {
      const before = await fixture.gateway.money(fixture.customer.accountId);
      const reply = await chat(ask("first", { provider }));
      expect(reply.status).toBe(400);
      expect(reply.body.toString()).toContain(message);
      expect([...a().requests, ...b().requests]).toHaveLength(0);
      expect((await fixture.gateway.money(fixture.customer.accountId)).held).toBe(before.held);
    },
  );
});

it.each([
  ["{", "x-uas-route must be a JSON object"],
  ["[]", "x-uas-route must be a JSON object"],
  ['{"weight":1}', "x-uas-route.weight is not known"],
])("the header %s is refused, and nothing is sent", async (header, message) => {
  const reply = await chat(ask("first"), { "x-uas-route": header });
  expect(reply.status).toBe(400);
  expect(reply.body.toString()).toContain(message);
  expect([...a().requests, ...b().requests]).toHaveLength(0);
});

describe("fallback models", () => {
  it.each([
    ["of the configuration", { model: "replaced" }],
    ["of the request", { model: "alone", models: ["alone", "cheaper"] }],
    ["of the request by their name in uas.yaml", { model: "alone", fallback_models: ["cheaper"] }],
  ])(
    "fallback models %s take the call when all routes fail, at their own price",
    async (_name, more) => {
      a().answer = refuses(404);
      const id = newRequestId();
      const reply = await chat(ask("", more), { "x-request-id": id });
      expect(reply.status).toBe(200);
      expect(JSON.parse(reply.body.toString())).toMatchObject({ model: "cheaper" });
      expect(reply.headers["x-uas-route"]).toBe("b/y");
      const call = await fixture.gateway.call(id);
      expect(call.model).toBe("cheaper");
      // 15 tokens at 2 USD for a million.
      expect(call.cost?.amountNanos).toBe(30_000n);
    },
  );

  it("take the calls of a model whose only route has an open breaker, without asking it", async () => {
    a().answer = refuses(500);
    for (let at = 0; at < 10; at++) expect((await chat(ask("doomed"))).status).toBe(200);
    expect(a().requests).toHaveLength(5);
    expect(b().requests).toHaveLength(10);
  });

  it("take a request that is too long for the model's only route", async () => {
    a().answer = refuses(400, {}, "context_length_exceeded");
    const reply = await chat(ask("short"));
    expect([reply.status, reply.headers["x-uas-route"]]).toEqual([200, "b/y"]);
    expect([a().requests.length, b().requests.length]).toEqual([1, 1]);
  });

  it("take a stream that breaks before its first content, as another route would", async () => {
    a().answer = (request) => {
      beginsStream(request);
      setImmediate(() => request.response.destroy());
    };
    const reply = await chat(ask("begun", { stream: true }));
    expect(reply.headers["x-uas-route"]).toBe("b/y");
    expect(reply.body.toString()).toContain("[DONE]");
  });

  it("fallback models of the request that do not exist are refused", async () => {
    const reply = await chat(ask("alone", { models: ["none"] }));
    expect(reply.status).toBe(404);
    onTestFinished(() => expect(a().requests).toHaveLength(0));
  });
});
