/** R-KEY-4: name, models, expiry and limit of a key: given at its creation, changed later. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type KeySchema, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService, UpdateKeyRequestSchema } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { requestCheck } from "../../../src/core/request-rules.ts";
import { readKeyChange } from "../../../src/key/service.ts";
import { amountNanosMax } from "../../../src/core/money.ts";
import { codeOf, openRooms, type Rooms } from "./rooms.ts";

let rooms: Rooms;

beforeAll(async () => {
  rooms = await openRooms();
});
afterAll(() => rooms.close());

const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });
const inAnHour = timestampFromDate(new Date(Date.now() + 3_600_000));

type KeyInit = MessageInitShape<typeof KeySchema>;

async function update(key: KeyInit, paths: string[], as?: Rooms["as"]) {
  const { keys } = as?.({ kind: "session", accountId: key.accountId ?? "" }) ?? rooms;
  return (await keys.updateKey({ key, updateMask: { paths } })).key;
}

describe("CreateKey", () => {
  it("takes an expiry and a limit, and shows them with what was spent", async () => {
    const { accountId } = await rooms.owner();
    const limits = { expireTime: inAnHour, spendLimit: usd(amountNanosMax) };
    const { key } = await rooms.keys.createKey({ accountId, ...limits });
    expect(key).toMatchObject({ ...limits, spent: usd(0n) });
    const { keys } = await rooms.keys.listKeys({ accountId });
    expect(keys[0]).toEqual(key);
    await rooms.database.pool.query(
      "insert into key_spend (key_id, account_id, spent) values ($1, $2, 12)",
      [key?.keyId, accountId],
    );
    expect((await rooms.keys.getKey({ keyId: key?.keyId ?? "" })).key?.spent).toMatchObject(
      usd(12n),
    );
  });
});

describe("UpdateKey", () => {
  it("changes exactly what the mask names, and clears what the key does not have", async () => {
    const { keyId } = await rooms.owner(["a"]);
    const all = { name: "n", models: ["b"], expireTime: inAnHour, spendLimit: usd(1n) };
    const paths = ["name", "models", "expire_time", "spend_limit"];
    expect(await update({ keyId, ...all }, paths)).toMatchObject(all);
    expect(await update({ keyId, name: " m " }, ["name"])).toMatchObject({ ...all, name: "m" });
    expect(await update({ keyId, ...all }, ["models"])).toMatchObject({ ...all, name: "m" });
    const cleared = await update({ keyId }, paths);
    expect(cleared).toMatchObject({ name: "", models: [] });
    expect([cleared?.expireTime, cleared?.spendLimit]).toEqual([undefined, undefined]);
    expect((await rooms.keys.getKey({ keyId })).key).toEqual(cleared);
  });

  it("changes a disabled key, and no deleted one", async () => {
    const { keyId } = await rooms.owner();
    await rooms.keys.disableKey({ keyId });
    expect(await update({ keyId, name: "n" }, ["name"])).toMatchObject({
      name: "n",
      state: KeyState.DISABLED,
    });
    await rooms.keys.deleteKey({ keyId });
    expect(await codeOf(update({ keyId, name: "m" }, ["name"]))).toBe(ErrorCode.INVALID_REQUEST);
    expect((await rooms.keys.getKey({ keyId })).key?.name).toBe("n");
  });

  it("is for the account's own session too, and for no other", async () => {
    const [mine, other] = [await rooms.owner(), await rooms.owner()];
    const { accountId } = mine;
    const own = { keyId: mine.keyId, accountId, name: "n" };
    expect((await update(own, ["name"], rooms.as))?.name).toBe("n");
    const foreign = { keyId: other.keyId, accountId, name: "n" };
    expect(await codeOf(update(foreign, ["name"], rooms.as))).toBe(ErrorCode.NOT_FOUND);
    expect((await rooms.keys.getKey({ keyId: other.keyId })).key?.name).toBe("");
  });
});

const seconds = (value: bigint) => ({ seconds: value, nanos: 0 });

describe.each<[string, KeyInit, string[]]>([
  ["no mask", { name: "n" }, []],
  ["an unknown member", {}, ["color"]],
  ["a member that is not changed so", {}, ["state"]],
  ["everything at once", {}, ["*"]],
  ["one good and one bad member", { name: "n" }, ["name", "spent"]],
  ["a control character", { name: "a\nb" }, ["name"]],
  ["an empty model", { models: [""] }, ["models"]],
  ["an expiry that is past", { expireTime: seconds(1n) }, ["expire_time"]],
  ["an expiry of year 10000", { expireTime: seconds(253_402_300_800n) }, ["expire_time"]],
  ["an expiry beyond all time", { expireTime: seconds(1n << 62n) }, ["expire_time"]],
  ["nanos that are none", { expireTime: { ...inAnHour, nanos: -1 } }, ["expire_time"]],
  ["a limit of nothing", { spendLimit: usd(0n) }, ["spend_limit"]],
  ["a negative limit", { spendLimit: usd(-1n) }, ["spend_limit"]],
  ["a budget of nothing", { budgets: [{ period: 1, amount: usd(0n) }] }, ["budgets"]],
  ["a budget without a period", { budgets: [{ amount: usd(1n) }] }, ["budgets"]],
  [
    "a budget for an unknown period",
    { budgets: [{ period: 4 as 3, amount: usd(1n) }] },
    ["budgets"],
  ],
  ["a budget without an amount", { budgets: [{ period: 1 }] }, ["budgets"]],
  [
    "two budgets for a period",
    { budgets: [1n, 2n].map((nanos) => ({ period: 2 as const, amount: usd(nanos) })) },
    ["budgets"],
  ],
  [
    "a budget of an unknown time zone",
    { budgets: [{ period: 1, amount: usd(1n), timeZone: "Mars/Base" }] },
    ["budgets"],
  ],
  [
    "a budget of an offset",
    { budgets: [{ period: 1, amount: usd(1n), timeZone: "+08:00" }] },
    ["budgets"],
  ],
  ["another currency", { spendLimit: { currencyCode: "EUR", amountNanos: 1n } }, ["spend_limit"]],
] satisfies [string, MessageInitShape<typeof KeySchema>, string[]][])(
  "R-ERR-7: %s",
  (_, key, paths) => {
    it("is refused and changes nothing", async () => {
      const { keyId } = await rooms.owner();
      const before = (await rooms.keys.getKey({ keyId })).key;
      expect(await codeOf(update({ keyId, ...key }, paths))).toBe(ErrorCode.INVALID_REQUEST);
      expect((await rooms.keys.getKey({ keyId })).key).toEqual(before);
    });
  },
);

it("R-ERR-7: whatever the mask and the members are, they can be stored or are INVALID_REQUEST", () => {
  const int64 = fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n });
  const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  const key = fc.record(
    {
      name: fc.string({ unit: "binary" }),
      models: fc.array(fc.string({ unit: "binary" }), { maxLength: 3 }),
      expireTime: fc.record({ seconds: fc.oneof(int64, fc.bigInt(0n, 1n << 40n)), nanos: int32 }),
      spendLimit: fc.record({
        currencyCode: fc.constantFrom("", "USD", "EUR"),
        amountNanos: int64,
      }),
    },
    { requiredKeys: [] },
  );
  const paths = fc.oneof(
    fc.subarray(["name", "models", "expire_time", "spend_limit"]),
    fc.array(fc.string(), { maxLength: 2 }),
  );
  const check = requestCheck(KeyService.method.updateKey);
  fc.assert(
    fc.property(key, paths, (init, named) => {
      const request = create(UpdateKeyRequestSchema, { key: init, updateMask: { paths: named } });
      try {
        check?.(request);
        const { expireTime, spendLimit } = readKeyChange(request);
        if (expireTime) expect(expireTime.getFullYear()).toBeLessThan(10_000);
        if (spendLimit != null) expect(spendLimit).toBeGreaterThan(0n);
      } catch (error) {
        expect(error).toMatchObject({ code: ErrorCode.INVALID_REQUEST });
      }
    }),
  );
});
