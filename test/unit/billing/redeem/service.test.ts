/** Codes that are worth money: each counts once (R-MON-9, R-CON-1). */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { MikroORM } from "@mikro-orm/postgresql";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TopUpSource } from "../../../../gen/uas/billing/v1/billing_pb.ts";
import { RedeemCodeState } from "../../../../gen/uas/billing/v1/redeem_pb.ts";
import { RedeemService } from "../../../../gen/uas/billing/v1/redeem_service_pb.ts";
import {
  newRedeemCode,
  readRedeemCode,
  createRedeemService,
} from "../../../../src/billing/redeem/service.ts";
import { type Caller, operator } from "../../../../src/core/caller.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { ormOptions } from "../../../../src/db/database.ts";
import { money } from "../../../../src/core/money.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { type Billing, openBilling } from "../harness.ts";
import { rpcsOf } from "../rpcs.ts";

let billing: Billing;
let orm: MikroORM;
beforeAll(async () => {
  billing = await openBilling();
  orm = await MikroORM.init(ormOptions(billing.url));
});
afterAll(async () => {
  await orm.close(true);
  await billing.close();
});

function codesOf(caller: Caller = operator) {
  const accountExists = async (): Promise<boolean> => true;
  const service = createRedeemService({
    clock: systemClock,
    orm,
    pool: billing.pool,
    accountExists,
  });
  return rpcsOf(RedeemService, service, caller);
}

const session = (accountId: string): Caller => ({ kind: "session", accountId });

async function makeOne(rest: { source?: TopUpSource; note?: string } = {}) {
  const made = await codesOf().createRedeemCodes({ amount: money(500n), ...rest });
  return { code: made.codes[0] ?? "", id: made.redeemCodes[0]?.redeemCodeId ?? "" };
}

async function stateOf(id: string): Promise<RedeemCodeState | undefined> {
  const { redeemCodes } = await codesOf().listRedeemCodes({});
  return redeemCodes.find(({ redeemCodeId }) => redeemCodeId === id)?.state;
}

describe("a redeem code", () => {
  test("R-MON-9: a redeem code adds its money once, however many accounts redeem it at once", async () => {
    const { code, id } = await makeOne();
    const accounts = [newId(), newId(), newId()];
    const tries = [...accounts, ...accounts, ...accounts].map((accountId) =>
      codesOf(session(accountId))
        .redeem({ accountId, code })
        .then(
          ({ replayed }) => ({ accountId, replayed }),
          () => undefined,
        ),
    );
    const told = (await Promise.all(tries)).filter((each) => each !== undefined);
    expect(told).toHaveLength(3);
    expect(told.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(new Set(told.map(({ accountId }) => accountId)).size).toBe(1);
    const [winner] = told;
    expect(await billing.balance(winner?.accountId ?? "")).toEqual({ available: 500n, held: 0n });
    expect(await stateOf(id)).toBe(RedeemCodeState.REDEEMED);
    await billing.expectClean();
  });

  test("a redeem code is booked as a grant, or as the payment it was sold for, and its ledger entry names it", async () => {
    const accountId = newId();
    const before = await billing.sums();
    const [granted, sold] = [await makeOne(), await makeOne({ source: TopUpSource.PAYMENT })];
    for (const { code } of [granted, sold]) await codesOf().redeem({ accountId, code });
    const after = await billing.sums();
    expect((after[4] ?? 0n) - (before[4] ?? 0n)).toBe(-500n);
    expect((after[3] ?? 0n) - (before[3] ?? 0n)).toBe(-500n);
    const where = `account_id = '${accountId}' and reference = 'redeem ${sold.id}' and kind = 1`;
    expect(await billing.count("ledger_entry", where)).toBe(2);
  });

  test("a redeem code is found in any spelling with spaces, dashes or lower case, and by nothing else", async () => {
    const accountId = newId();
    const { code } = await makeOne();
    const typed = ` ${code.toLowerCase().replaceAll("-", " ").replaceAll("0", "o").replaceAll("1", "l")}`;
    const { amount, balance } = await codesOf().redeem({ accountId, code: typed });
    expect([amount?.amountNanos, balance?.available?.amountNanos]).toEqual([500n, 500n]);
    const other = codesOf().redeem({ accountId, code: newRedeemCode() });
    await expect(other).rejects.toMatchObject({ status: 404, param: "code" });
    await expect(codesOf().redeem({ accountId, code: code.slice(1) })).rejects.toMatchObject({
      status: 400,
      param: "code",
    });
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const read = readRedeemCode(text);
        return read === undefined || /^[0-9A-HJKMNP-TV-Z]{20}$/.test(read);
      }),
    );
  });

  test("that is revoked or expired is answered like an unknown one, and a redeemed one cannot be revoked", async () => {
    const accountId = newId();
    const own = codesOf(session(accountId));
    const [revoked, over, used] = [await makeOne(), await makeOne(), await makeOne()];
    await codesOf().revokeRedeemCode({ redeemCodeId: revoked.id });
    await billing.pool.query(
      "update redeem_code set expire_time = now() - interval '1 s' where id = $1",
      [over.id],
    );
    const unknown = await own.redeem({ accountId, code: newRedeemCode() }).catch(String);
    for (const { code } of [revoked, over]) {
      expect(await own.redeem({ accountId, code }).catch(String)).toBe(unknown);
    }
    expect(await stateOf(over.id)).toBe(RedeemCodeState.EXPIRED);
    await own.redeem({ accountId, code: used.code });
    const late = codesOf().revokeRedeemCode({ redeemCodeId: used.id });
    await expect(late).rejects.toMatchObject({ param: "redeem_code_id" });
    const again = await codesOf().revokeRedeemCode({ redeemCodeId: revoked.id });
    expect(again.redeemCode?.state).toBe(RedeemCodeState.REVOKED);
    expect(await billing.balance(accountId)).toEqual({ available: 500n, held: 0n });
  });

  test("a redeem code is not stored in plain text, and operators' actions on codes are logged once", async () => {
    const accountId = newId();
    const { code, id } = await makeOne({ note: "fair" });
    await codesOf().redeem({ accountId, code });
    await codesOf().redeem({ accountId, code });
    const { rows } = await billing.pool.query<{ text: string; action: string }>(
      `select a.action, concat(a, c) as text from redeem_code c
         join audit_entry a on a.subject in ($1, $2) where c.id::text = $1 order by a.id`,
      [id, accountId],
    );
    expect(rows.map(({ action }) => action)).toEqual(["redeem.create", "redeem.use"]);
    for (const { text } of rows) {
      expect(text.replaceAll("-", "")).not.toContain(code.replaceAll("-", ""));
    }
    const { redeemCodes } = await codesOf().listRedeemCodes({
      accountId,
      state: RedeemCodeState.REDEEMED,
    });
    expect(redeemCodes).toMatchObject([{ note: "fair", accountId, hint: code.slice(-4) }]);
  });

  test("R-AUTH-6: a session redeems for its own account only", async () => {
    const { code } = await makeOne();
    const other = codesOf(session(newId())).redeem({ accountId: newId(), code });
    await expect(other).rejects.toMatchObject({ status: 404 });
  });

  test.each([
    ["count", { count: 1_001 }],
    ["amount", { amount: money(0n) }],
    ["note", { note: "two\nlines" }],
    ["expire_time", { expireTime: timestampFromMs(1) }],
    ["source", { source: 9 as TopUpSource }],
  ])("that is wanted with a wrong %s is refused", async (param, wrong) => {
    const made = codesOf().createRedeemCodes({ amount: money(1n), ...wrong });
    await expect(made).rejects.toMatchObject({ status: 400, param });
  });
});
