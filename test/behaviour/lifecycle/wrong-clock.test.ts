/** Gateways whose clock, or whose database's clock, is wrong: calls, prices, links, keys and codes as by the right time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { PriceState } from "../../../gen/uas/billing/v1/price_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { totpCode } from "../../../src/account/user/totp.ts";
import type { PriceConfig } from "../../../src/config/config.ts";
import { failureOf, openBrowser } from "../../unit/account/browser.ts";
import { type ClockedServer, findFaketime, startClocked } from "../../nightly/chaos/clocks.ts";
import { often, type NativeVendorServer, startNativeVendor } from "../native/native-vendor.ts";
import { playReplicate, type Replicate } from "../native/replicate-vendor.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type Customer, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { createDatabase, dropDatabase, withDatabase } from "../../support/test-server.ts";

const dayMs = 86_400_000;
const hourMs = 3_600_000;

interface Scenario {
  readonly what: string;
  /** How far the process's clock is off, in milliseconds. */
  readonly ownOffMs: number;
  /** How far the database's clock is off, in milliseconds. */
  readonly databaseOffMs: number;
}

const scenarios: readonly Scenario[] = [
  { what: "a process clock 400 days ahead", ownOffMs: 400 * dayMs, databaseOffMs: 0 },
  { what: "a process clock 400 days behind", ownOffMs: -400 * dayMs, databaseOffMs: 0 },
  { what: "a database clock a day ahead", ownOffMs: 0, databaseOffMs: dayMs },
  { what: "a database clock a day behind", ownOffMs: 0, databaseOffMs: -dayMs },
];

/** The clock that is not faked. */
const RealDate = Date;

/** Sets the clock of this process off; 0: right. */
function setOwn(offMs: number): void {
  vi.useRealTimers();
  if (offMs !== 0) vi.useFakeTimers({ toFake: ["Date"], now: RealDate.now() + offMs });
}

const none: PriceConfig = {
  ...priceDefault,
  input: undefined,
  output: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
};

/** Prices of three times: before, now and later. The one of now is 2,000 nano-USD. */
function dated(unit: "request" | "image", nowMs: number) {
  const price = (nanos: bigint): PriceConfig => ({ ...none, [unit]: nanos });
  return [
    { fromMs: -Infinity, price: price(1_000n) },
    { fromMs: nowMs - hourMs, price: price(2_000n) },
    { fromMs: nowMs + hourMs, price: price(3_000n) },
  ];
}

function startOn(database: TestDatabase, vendor: NativeVendorServer, nowMs: number) {
  const demo = (model: string) => [{ vendor: "demo", model }];
  return startGateway({
    database,
    taskTimings: often,
    vendors: {
      demo: { kind: "demo", baseUrl: "" },
      replicate: {
        kind: "replicate",
        baseUrl: vendor.origin,
        apiKey: vendor.secret,
        nativePrefix: "/replicate",
      },
    },
    models: {
      text: { routes: demo("instant"), prices: dated("request", nowMs) },
      image: {
        type: ModelType.IMAGE,
        routes: demo("image"),
        maxOutputTokens: 0,
        prices: dated("image", nowMs),
      },
      flux: {
        type: ModelType.IMAGE,
        routes: [{ vendor: "replicate", model: "labs/flux" }],
        maxOutputTokens: 0,
        prices: dated("image", nowMs),
      },
    },
  });
}

const isFakeable = findFaketime() !== undefined;

describe.each(scenarios)("with $what", ({ what, ownOffMs, databaseOffMs }) => {
  describe.skipIf(databaseOffMs !== 0 && !isFakeable)("a gateway", () => {
    let server: ClockedServer | undefined;
    let folder: string | undefined;
    let vendor: NativeVendorServer;
    let replicate: Replicate;
    let right: Gateway;
    let wrong: Gateway;
    let pool: Pool;
    let customer: Customer;
    let nowMs: number;

    async function openDatabase(): Promise<TestDatabase> {
      if (databaseOffMs === 0) return createTestDatabase();
      folder = mkdtempSync(join(tmpdir(), "uas-clock-"));
      server = await startClocked(folder);
      server.setClock(databaseOffMs);
      const { adminUrl, template } = server;
      const name = await createDatabase(adminUrl, template);
      return { url: withDatabase(adminUrl, name), close: () => dropDatabase(adminUrl, name) };
    }

    beforeAll(async () => {
      vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
      replicate = playReplicate(vendor);
      const database = await openDatabase();
      pool = new Pool({ connectionString: database.url, max: 2 });
      nowMs = RealDate.now() + databaseOffMs;
      // Both have one database: the one that is closed last closes it.
      right = await startOn({ ...database, close: async () => {} }, vendor, nowMs);
      setOwn(ownOffMs);
      wrong = await startOn(database, vendor, nowMs);
      customer = await wrong.customer();
    });
    beforeEach(() => setOwn(ownOffMs));
    afterEach(() => setOwn(0));
    afterAll(async () => {
      await right?.close();
      await pool?.end();
      await wrong?.close();
      await server?.close();
      await vendor?.close();
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    });

    async function ask(
      url: string,
      { id, body }: { readonly id?: string; readonly body?: object } = {},
    ): Promise<Record<string, unknown>> {
      const response = await fetch(url, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          authorization: `Bearer ${customer.key}`,
          "content-type": "application/json",
          ...(id !== undefined && { "x-request-id": id }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const json = (await response.json()) as Record<string, unknown>;
      expect(response.ok, JSON.stringify(json)).toBe(true);
      return json;
    }

    it(`charges a call the price in force, and records it in the current month, with ${what}`, async () => {
      const id = crypto.randomUUID();
      const messages = [{ role: "user", content: "Hello" }];
      const reply = await ask(`${wrong.url}/v1/chat/completions`, {
        id,
        body: { model: "text", messages },
      });
      expect(reply).toMatchObject({ object: "chat.completion" });
      const { cost, callId } = await wrong.call(id);
      expect(cost?.amountNanos).toBe(2_000n);
      const { rows } = await pool.query<{ part: string; month: string; age_ms: number }>(
        `select tableoid::regclass::text as part,
            to_char(clock_timestamp() at time zone 'UTC', '"call_"YYYY_MM') as month,
            extract(epoch from clock_timestamp() - start_time)::float8 * 1000 as age_ms
          from call where id = $1`,
        [callId],
      );
      expect(rows[0]?.part).toBe(rows[0]?.month);
      expect(Math.abs(rows[0]?.age_ms ?? Number.NaN)).toBeLessThan(60_000);
    });

    it(`charges a task the price in force with ${what}`, async () => {
      const body = { modelKey: "image", imageParams: { prompt: "a lighthouse" } };
      const { taskId } = await ask(`${wrong.url}/api/ai/tasks`, { body });
      const poll = () => ask(`${wrong.url}/api/ai/tasks/${String(taskId)}?wait=10`);
      await expect
        .poll(async () => (await poll())["status"], { timeout: 30_000 })
        .toBe("completed");
      expect(await poll()).toMatchObject({ cost: { amount: "0.000002" } });
    });

    it(`shows the price in force with ${what}`, async () => {
      const shown = await ask(`${wrong.url}/v1/models/text`);
      expect(shown["price"]).toMatchObject({ request: "0.000002" });
      const { prices } = await wrong.billing.getPrice({ modelKey: "text" });
      expect(prices?.versions.map(({ state }) => state)).toEqual([
        PriceState.PAST,
        PriceState.CURRENT,
        PriceState.FUTURE,
      ]);
    });

    it(`opens links of another process, which opens its own, with ${what}`, async () => {
      const link = async (from: Gateway): Promise<string> => {
        const path = "/replicate/v1/models/labs/flux/predictions";
        const seen = await ask(`${from.url}${path}`, { body: { input: { prompt: "a" } } });
        const { stream = "" } = seen["urls"] as { stream?: string };
        return new URL(stream).pathname;
      };
      const own = await link(wrong);
      setOwn(0);
      const others = await link(right);
      expect((await fetch(`${right.url}${own}`)).status).toBe(200);
      setOwn(ownOffMs);
      expect((await fetch(`${wrong.url}${others}`)).status).toBe(200);
      for (const prediction of replicate.predictions.values()) prediction.status = "failed";
    });

    it(`accepts keys and codes that expire tomorrow, and refuses what expired yesterday, with ${what}`, async () => {
      const { accountId } = customer;
      const create = (expireMs: number) =>
        wrong.keys.createKey({ accountId, name: "k", expireTime: timestampFromMs(expireMs) });
      const { secret } = await create(nowMs + dayMs);
      const models = await fetch(`${wrong.url}/v1/models`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      expect(models.status).toBe(200);
      await expect(create(nowMs - dayMs)).rejects.toThrow("must be in the future");
      const redeem = createClient(RedeemService, wrong.app.transport);
      const { codes } = await redeem.createRedeemCodes({
        amount: { currencyCode: "USD", amountNanos: 5n },
        expireTime: timestampFromMs(nowMs + dayMs),
      });
      const redeemed = await redeem.redeem({ accountId, code: codes[0] ?? "" });
      expect(redeemed.amount?.amountNanos).toBe(5n);
    });

    it(`accepts a right code of an authenticator, and counts a wrong one, with ${what}`, async () => {
      const users = createClient(UserService, wrong.app.transport);
      const { user } = await users.createUser({ accountId: customer.accountId });
      const { token } = await users.createSignInLink({ userId: user?.userId ?? "" });
      const browser = openBrowser(wrong.url);
      await browser.session.signInWithLink({ token });
      const { secret } = await browser.users.startTotp({});
      // The user's phone is right.
      const period = Math.floor(RealDate.now() / 30_000);
      const wrongCode = totpCode(secret, period - 50);
      expect((await failureOf(browser.users.confirmTotp({ code: wrongCode }))).param).toBe(
        "totp_code",
      );
      const { rows } = await pool.query<{ wrong: number }>("select wrong from code_guess");
      // It may have been a code of either clock.
      expect(rows).toEqual([{ wrong: 2 }]);
      const confirmed = await browser.users.confirmTotp({ code: totpCode(secret, period) });
      expect(confirmed.user?.hasTotp).toBe(true);
    });

    it(`gives users, sessions and records of operators ids of the right time with ${what}`, async () => {
      const users = createClient(UserService, wrong.app.transport);
      const { user } = await users.createUser({ accountId: customer.accountId });
      const { token } = await users.createSignInLink({ userId: user?.userId ?? "" });
      await openBrowser(wrong.url).session.signInWithLink({ token });
      const link = await users.createSignInLink({ accountId: customer.accountId });
      const operator = openBrowser(wrong.url);
      await operator.session.signInWithLink({ token: link.token });
      await operator.client(AccountService).createAccount({ name: "by the console" });
      const tables = ["console_user", "console_session", "audit_entry"];
      const newest = tables.map(
        (table) => `select '${table}' as table, max(id::text) as id from ${table}`,
      );
      const { rows } = await pool.query<{ table: string; id: string }>(newest.join(" union all "));
      const offMs = rows.map(
        ({ id }) => Number.parseInt(id.replace("-", "").slice(0, 12), 16) - nowMs,
      );
      expect(rows.map(({ table }) => table)).toEqual(tables);
      expect(Math.max(...offMs.map(Math.abs))).toBeLessThan(10 * 60_000);
    });

    it(`tells its operator how far the clocks differ with ${what}`, async () => {
      const [warning] = wrong.log.filter((line) => line.includes("clock of this machine"));
      const { aheadSeconds } = JSON.parse(warning ?? "{}") as { aheadSeconds?: number };
      const aheadMs = ownOffMs - databaseOffMs;
      expect(Math.abs((aheadSeconds ?? 0) * 1_000 - aheadMs)).toBeLessThan(60_000);
      const text = await wrong.app.metrics.registry.metrics();
      const [, seconds = ""] = /^uas_clock_offset_seconds (\S+)$/m.exec(text) ?? [];
      expect(Math.abs(Number(seconds) * 1_000 - aheadMs)).toBeLessThan(10 * 60_000);
    });
  });
});
