import { describe, expect, it, vi } from "vitest";
import { keptReasoningBytesMax } from "../../../../src/core/limits.ts";
import { createReasoningCarry } from "../../../../src/responses/stored/reasoning.ts";
import { expire, newAccount, useDatabase } from "./harness.ts";

const fixture = useDatabase();
const key = Buffer.alloc(32, 1);
const parts = JSON.stringify([{ text: "why", seal: { signature: "c2ln" } }]);

function open(options: { key?: Buffer; warn?: () => void } = {}) {
  return createReasoningCarry({ pool: fixture.pool, key, ...options });
}

describe("stored reasoning (R-TXT-3)", () => {
  it("is found by each call of its turn, for many turns at once", async () => {
    const [carry, account] = [open(), newAccount()];
    const odd = `call_\u0000${"x".repeat(5_000)}`;
    expect(await carry.keep(account, ["b", "a", odd, "a"], parts)).toBe(true);
    expect(await carry.keep(account, ["c"], "[]")).toBe(true);
    const found = await carry.find(account, ["a", "c", odd, "none", "b"]);
    expect(Object.fromEntries(found)).toEqual({ a: parts, b: parts, c: "[]", [odd]: parts });
  });

  it("is never found by another account, even with the same id", async () => {
    const [carry, one, two] = [open(), newAccount(), newAccount()];
    await carry.keep(one, ["same"], "1");
    expect((await carry.find(two, ["same"])).size).toBe(0);
    await carry.keep(two, ["same"], "2");
    expect((await carry.find(one, ["same"])).get("same")).toBe("1");
  });

  it("is stored for 24 hours", async () => {
    const [carry, account] = [open(), newAccount()];
    await carry.keep(account, ["a", "b"], parts);
    const { rows } = await fixture.pool.query<{ hours: number }>(
      `select extract(epoch from expires_at - now())::float8 / 3600 as hours
       from kept_reasoning where account_id = $1`,
      [account],
    );
    expect(rows).toHaveLength(2);
    for (const { hours } of rows) expect(hours).toBeCloseTo(24, 1);
    await expire(fixture.pool, "kept_reasoning", account);
    expect((await carry.find(account, ["a", "b"])).size).toBe(0);
  });

  it("is replaced where a call's id comes again", async () => {
    const [carry, account] = [open(), newAccount()];
    await carry.keep(account, ["a", "b"], "old");
    await carry.keep(account, ["b", "a"], "new");
    expect([...(await carry.find(account, ["a", "b"])).values()]).toEqual(["new", "new"]);
  });

  it("is unreadable in the database", async () => {
    const [carry, account] = [open(), newAccount()];
    await carry.keep(account, ["call_visible"], '"the secret reasoning"');
    const { rows } = await fixture.pool.query<{ dump: string }>(
      "select encode(sealed, 'escape') || encode(digest, 'escape') as dump from kept_reasoning where account_id = $1",
      [account],
    );
    expect(rows[0]?.dump).not.toMatch(/secret|visible/);
  });

  it("is missing where it cannot be unsealed, and the operator is warned", async () => {
    const account = newAccount();
    await open().keep(account, ["a"], parts);
    const warn = vi.fn();
    const carry = open({ key: Buffer.alloc(32, 2), warn });
    expect((await carry.find(account, ["a"])).size).toBe(0);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("UAS_MASTER_KEY"), {
      accountId: account,
    });
  });

  it("is not stored without a call, nor beyond its size limit", async () => {
    const [carry, account] = [open(), newAccount()];
    expect(await carry.keep(account, [], parts)).toBe(false);
    expect(await carry.keep(account, ["a"], "x".repeat(keptReasoningBytesMax + 1))).toBe(false);
    expect((await carry.find(account, ["a"])).size).toBe(0);
    expect((await carry.find(account, [])).size).toBe(0);
  });

  it("may be stored concurrently for the same calls", async () => {
    const [carry, account] = [open(), newAccount()];
    const ids = ["a", "b", "c", "d"];
    const orders = [ids, ids.toReversed(), ["c", "a", "d", "b"], ["b", "d", "a", "c"]];
    await Promise.all(
      Array.from({ length: 40 }, (_, i) => carry.keep(account, orders[i % 4] ?? ids, "[]")),
    );
    expect((await carry.find(account, ids)).size).toBe(4);
  });
});
