/** POST /api/ai/tasks: what is accepted, what is refused and named, and what repeats. */
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Customer, errorOf, imageNanos, openTasks, type Tasks } from "../harness.ts";

let tasks: Tasks;
let customer: Customer;
beforeAll(async () => {
  tasks = await openTasks();
  customer = await tasks.customer();
});
afterAll(() => tasks.close());

const path = "/api/ai/tasks";
const image: JsonObject = { modelKey: "image", imageParams: { prompt: "a boat" } };

describe("a submit", () => {
  it("R-TSK-2: a submit answers 200 with the task, and holds what it can cost", async () => {
    const payer = await tasks.customer(1_000_000_000n);
    const body = {
      model_key: "image",
      image_params: { prompt: "a boat", negative_prompt: "rain", n: 3 },
    };
    const { status, json, headers } = await tasks.send(payer, path, {
      body,
      headers: { "x-request-id": "mine" },
    });
    expect(status).toBe(200);
    expect(headers["x-request-id"]).toBe("mine");
    expect(json).toEqual({
      taskId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      status: "progress",
      progress: 0,
      modelKey: "image",
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(await tasks.money(payer.accountId)).toEqual([
      1_000_000_000n - 3n * imageNanos,
      3n * imageNanos,
    ]);
    const { rows } = await tasks.pool.query("select * from task where id = $1", [json["taskId"]]);
    expect(rows[0]).toMatchObject({
      account_id: payer.accountId,
      key_id: payer.keyId,
      request_id: "mine",
      state: "queued",
      params: { prompt: "a boat", negativePrompt: "rain", n: 3 },
      hold: String(3n * imageNanos),
    });
  });

  it.each([
    ["acme/film", { videoParams: { prompt: "p", duration: 5 } }],
    ["text", { textParams: { messages: [{ role: "user", content: "hi" }], maxTokens: 5 } }],
  ])("a submit accepts %s", async (modelKey, params) => {
    const { status } = await tasks.send(customer, path, { body: { modelKey, ...params } });
    expect(status).toBe(200);
  });

  it("a submit takes the discount of the account into the hold", async () => {
    const payer = await tasks.customer(1_000_000_000n, { discountBp: 2_500 });
    await tasks.submit(payer);
    expect((await tasks.money(payer.accountId))[1]).toBe((imageNanos * 3n) / 4n);
  });

  it("R-ID-3: a submit takes the request id of requestContext where no header has one", async () => {
    const body = { ...image, requestContext: { request_id: "from-body" } };
    const told = await tasks.send(customer, path, { body });
    expect(told.headers["x-request-id"]).toBe("from-body");
    const { rows } = await tasks.pool.query("select request_id from task where id = $1", [
      told.json["taskId"],
    ]);
    expect(rows).toEqual([{ request_id: "from-body" }]);
    const both = await tasks.send(customer, path, { body, headers: { "x-request-id": "header" } });
    expect(both.headers["x-request-id"]).toBe("header");
    const refused = await tasks.send(customer, path, { body: { ...body, modelKey: "none" } });
    expect([refused.status, refused.headers["x-request-id"]]).toEqual([404, "from-body"]);
    const odd = { ...image, requestContext: { request_id: "not visible\n" } };
    const ours = await tasks.send(customer, path, { body: odd });
    expect(ours.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("R-TSK-6: money", () => {
  it("is required: the 402 states the amount, leaves no task, and does not use up the callback id", async () => {
    const poor = await tasks.customer(imageNanos - 1n);
    const body = { ...image, callbackId: "c" };
    const { status, json, headers } = await tasks.send(poor, path, { body });
    expect([status, headers["x-should-retry"]]).toEqual([402, "false"]);
    expect(errorOf(json)).toMatchObject({ code: "insufficient_balance" });
    expect(errorOf(json)["message"]).toMatch(/0\.04 USD, 0\.039999999 USD is available/);
    const { rows } = await tasks.pool.query("select from task where account_id = $1", [
      poor.accountId,
    ]);
    expect(rows).toEqual([]);
    expect(await tasks.money(poor.accountId)).toEqual([imageNanos - 1n, 0n]);
    const other = { ...body, imageParams: { prompt: "another" } };
    expect((await tasks.send(poor, path, { body: other })).status).toBe(402);
  });

  it("R-KEY-4: the key's spend limit counts, exactly, for submits at once", async () => {
    const limited = await tasks.customer(undefined, { keyLimitNanos: 3n * imageNanos });
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => tasks.send(limited, path, { body: image })),
    );
    const counts = Map.groupBy(replies, ({ status }) => status);
    expect(counts.get(200)?.length).toBe(3);
    expect(counts.get(402)?.length).toBe(5);
    expect(errorOf(counts.get(402)?.[0]?.json ?? {})["message"]).toMatch(
      /spend limit of 0\.12 USD/,
    );
  });

  it("a budget of the account counts, exactly, for submits at once", async () => {
    const limited = await tasks.customer();
    const budget = "select ledger_budget_set($1, $1, '{3}', array[$2::bigint], '{UTC}')";
    await tasks.pool.query(budget, [limited.accountId, (3n * imageNanos).toString()]);
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => tasks.send(limited, path, { body: image })),
    );
    const counts = Map.groupBy(replies, ({ status }) => status);
    expect(counts.get(200)?.length).toBe(3);
    expect(counts.get(402)?.length).toBe(5);
    expect(errorOf(counts.get(402)?.[0]?.json ?? {})["message"]).toMatch(
      /account's budget of 0\.12 USD per month \(UTC\) only 0 USD is left until it resets at 20/,
    );
  });
});

it.each(["none", "closed"])(
  "R-ERR-1: an error about the model %s names modelKey",
  async (modelKey) => {
    const submitted = await tasks.send(customer, path, { body: { ...image, modelKey } });
    const asked = await tasks.send(customer, `/api/ai/models/${modelKey}/schema`);
    expect([submitted, asked].map(({ json }) => errorOf(json)["param"])).toEqual([
      "modelKey",
      "modelKey",
    ]);
  },
);

describe("R-TSK-3: idempotency", () => {
  const body: JsonObject = {
    ...image,
    callbackId: "order-1 ✓",
    callbackUrl: "https://receiver.example/hook",
  };

  it("gives the same task for the same body, whatever its spelling, and charges once", async () => {
    const payer = await tasks.customer();
    const first = await tasks.send(payer, path, { body });
    expect(first.json["callbackId"]).toBe("order-1 ✓");
    expect(first.headers).not.toHaveProperty("idempotent-replayed");
    const spelled = {
      image_params: { prompt: "a boat", seed: null },
      callback_url: "https://receiver.example/hook",
      request_context: { request_id: "another" },
      callback_id: "order-1 ✓",
      model_key: "image",
    };
    for (const again of [body, spelled]) {
      const reply = await tasks.send(payer, path, { body: again });
      expect([reply.status, reply.json]).toEqual([200, first.json]);
      expect(reply.headers["idempotent-replayed"]).toBe("true");
    }
    expect((await tasks.money(payer.accountId))[1]).toBe(imageNanos);
  });

  it("takes 255 characters, whatever their width", async () => {
    const callbackId = "😀".repeat(255);
    const sent = () => tasks.send(customer, path, { body: { ...image, callbackId } });
    const first = await sent();
    expect([first.status, first.json["callbackId"]]).toEqual([200, callbackId]);
    expect((await sent()).json).toEqual(first.json);
  });

  it("names the header where its value belongs to another body", async () => {
    const headers = { "idempotency-key": "order-header" };
    await tasks.send(customer, path, { body: image, headers });
    const other = { ...image, imageParams: { prompt: "a ship" } };
    const { status, json } = await tasks.send(customer, path, { body: other, headers });
    expect([status, errorOf(json)["param"]]).toEqual([422, "Idempotency-Key"]);
    expect(errorOf(json)["message"]).toMatch(/^Idempotency-Key: /);
  });

  it("refuses another body with 422, and names the task", async () => {
    const payer = await tasks.customer();
    const first = await tasks.send(payer, path, { body });
    for (const other of [
      { ...body, imageParams: { prompt: "a ship" } },
      { ...body, callbackUrl: "https://other.example/" },
      { modelKey: "text", textParams: { prompt: "a boat" }, callbackId: body["callbackId"] ?? "" },
    ]) {
      const { status, json } = await tasks.send(payer, path, { body: other });
      expect([status, errorOf(json)["code"]]).toEqual([422, "idempotency_key_reused"]);
      expect(errorOf(json)["message"]).toContain(String(first.json["taskId"]));
    }
    expect((await tasks.money(payer.accountId))[1]).toBe(imageNanos);
  });

  it("makes one task of many submits at once, and lets other accounts use the same id", async () => {
    const [payer, other] = [await tasks.customer(), await tasks.customer()];
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => tasks.send(payer, path, { body })),
    );
    const ids = new Set(replies.map(({ json }) => json["taskId"]));
    expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(ids.size).toBe(1);
    expect(await tasks.money(payer.accountId)).toEqual([10_000_000_000n - imageNanos, imageNanos]);
    const elsewhere = await tasks.send(other, path, { body });
    expect(ids.has(elsewhere.json["taskId"])).toBe(false);
  });

  it("takes the Idempotency-Key header where there is no callbackId", async () => {
    const payer = await tasks.customer();
    const headers = { "idempotency-key": "key-1" };
    const first = await tasks.send(payer, path, { body: image, headers });
    const again = await tasks.send(payer, path, { body: image, headers });
    expect([again.json["taskId"], again.headers["idempotent-replayed"]]).toEqual([
      first.json["taskId"],
      "true",
    ]);
    const named = await tasks.send(payer, path, { body: { ...image, callbackId: "c" }, headers });
    expect(named.json["taskId"]).not.toBe(first.json["taskId"]);
  });

  it("returns an ended task unchanged", async () => {
    const payer = await tasks.customer();
    const first = await tasks.send(payer, path, { body });
    await tasks.send(payer, `${path}/${String(first.json["taskId"])}/cancel`, { body: "" });
    const again = await tasks.send(payer, path, { body });
    expect(again.json).toEqual({ ...first.json, status: "cancelled" });
  });
});

it("R-ERR-2: the 1,001st queued task is 429 queue_full, and accepted tasks are found again", async () => {
  const payer = await tasks.customer(undefined);
  const first = await tasks.send(payer, path, { body: { ...image, callbackId: "first" } });
  await tasks.pool.query(
    `insert into task (id, account_id, key_id, model, type, params, fingerprint, request_id, deadline, hold,
       price_version, discount_bp)
     select gen_random_uuid(), $1, $1, 'image', 2, '{}', '', 'r', now(), 0, '', 0
     from generate_series(1, 999)`,
    [payer.accountId],
  );
  const { status, json, headers } = await tasks.send(payer, path, { body: image });
  expect([status, errorOf(json)["code"]]).toEqual([429, "queue_full"]);
  expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  const again = await tasks.send(payer, path, { body: { ...image, callbackId: "first" } });
  expect([again.status, again.json["taskId"]]).toEqual([200, first.json["taskId"]]);
});
