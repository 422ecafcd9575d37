import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operator } from "../../../src/core/caller.ts";
import { createSecrets } from "../../../src/webhook/secrets.ts";
import { openWebhooks, type Webhooks } from "./harness.ts";
import { accountId, as, otherAccount, type WebhookClient } from "./rpc.ts";

let webhooks: Webhooks;
let rpc: WebhookClient;

beforeAll(async () => {
  webhooks = await openWebhooks();
  rpc = as(webhooks, operator);
});
afterAll(() => webhooks.close());

describe("secrets", () => {
  it("R-HOOK-6: the secrets of an account are generated at the first read, exactly once", async () => {
    const id = otherAccount;
    const all = await Promise.all(
      Array.from({ length: 20 }, () => rpc.getSecret({ accountId: id })),
    );
    const secrets = new Set(all.map(({ secret }) => secret?.current));
    expect(secrets.size).toBe(1);
    expect([...secrets][0]).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(all[0]?.secret).toMatchObject({ accountId: id, other: "", isPromoted: true });
  });

  it("secrets are stored sealed, and open with the same master key only", async () => {
    const { secret } = await rpc.getSecret({ accountId });
    const { rows } = await webhooks.pool.query<{ row: string }>(
      "select t::text as row from webhook_secret t",
    );
    const text = rows.map(({ row }) => row).join();
    const bytes = Buffer.from(secret?.current.slice(6) ?? "", "base64");
    for (const form of [
      secret?.current ?? "",
      Buffer.from(secret?.current ?? "").toString("hex"),
      bytes.toString("hex"),
    ]) {
      expect(text).not.toContain(form);
    }
    const { pool } = webhooks;
    const wrong = createSecrets({ pool, masterKey: () => Buffer.alloc(32, 8) });
    await expect(wrong.get(accountId)).rejects.toThrow("another master key");
    await expect(wrong.rotate(accountId)).rejects.toThrow("another master key");
    expect((await rpc.getSecret({ accountId })).secret).toEqual(secret);
  });

  it("R-HOOK-9: after a rotation the old secret signs until the new one is promoted, or a day has passed", async () => {
    const before = (await rpc.getSecret({ accountId })).secret;
    const rotated = (await rpc.rotateSecret({ accountId })).secret;
    expect(rotated).toMatchObject({ current: before?.current, isPromoted: false });
    expect(rotated?.other).not.toBe(before?.current);
    const hours = (Number(rotated?.rotationEndTime?.seconds ?? 0) - Date.now() / 1_000) / 3_600;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThan(24.1);
    // Not promoted: a second rotation replaces the new secret, which no client can use yet.
    const again = (await rpc.rotateSecret({ accountId })).secret;
    expect(again?.current).toBe(before?.current);
    expect(again?.other).not.toBe(rotated?.other);
    const promoted = (await rpc.promoteSecret({ accountId })).secret;
    expect(promoted).toMatchObject({
      current: again?.other,
      other: before?.current,
      isPromoted: true,
    });
    expect((await rpc.promoteSecret({ accountId })).secret).toEqual(promoted);
    const next = (await rpc.rotateSecret({ accountId })).secret;
    expect(next).toMatchObject({ current: promoted?.current, isPromoted: false });
    await webhooks.pool.query(
      "update webhook_secret set rotate_time = now() - interval '25 h' where account_id = $1",
      [accountId],
    );
    const over = (await rpc.getSecret({ accountId })).secret;
    expect(over).toMatchObject({ current: next?.other, other: "", isPromoted: true });
    expect(over?.rotationEndTime).toBeUndefined();
    await rpc.rotateSecret({ accountId });
    const dropped = (await rpc.promoteSecret({ accountId, dropOld: true })).secret;
    expect(dropped).toMatchObject({ other: "", isPromoted: true });
    expect(dropped?.current).not.toBe(over?.current);
  });
});
