/**
 * Actions that require more than a session: keys and webhook secrets require a code (R-KEY-3,
 * R-HOOK-6).
 */
import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { createKeyCopies } from "../../../src/key/copies.ts";
import { requireMasterKey } from "../../../src/key/master-key.ts";
import {
  actionCode,
  type Browser,
  createPhones,
  failureOf,
  letMinutePass,
  signInWithCode,
} from "./browser.ts";
import { useConsole } from "./console.ts";

const site = useConsole();
const newPhone = createPhones();

/** A user who is signed in and has a key. */
async function newOwner() {
  const browser = site.browser();
  const { user } = await signInWithCode(browser, newPhone());
  const accountId = user?.accountId ?? "";
  const keys = browser.client(KeyService);
  const { key, secret } = await keys.createKey({ accountId, name: "mine" });
  await letMinutePass(site.pool);
  return { browser, accountId, keys, keyId: key?.keyId ?? "", secret };
}

describe("R-KEY-3: copy again", () => {
  it("shows the key to who presents a code for this session, key and action, once", async () => {
    const { browser, keys, keyId, secret } = await newOwner();
    const code = await actionCode(browser, CodeAction.REVEAL_KEY, keyId);
    const before = browser.cookie;
    expect((await keys.revealKey({ keyId, code })).secret).toBe(secret);
    // The session has another token: who has seen the old one gains nothing.
    expect(browser.cookie).not.toBe(before);
    expect((await browser.session.getSession({})).session?.isCurrent).toBe(true);
    expect((await failureOf(keys.revealKey({ keyId, code }))).param).toBe("code");
  });

  it("takes no code of another key, action or session, and no wrong one", async () => {
    const phone = newPhone();
    const browser = site.browser();
    const { user } = await signInWithCode(browser, phone);
    const accountId = user?.accountId ?? "";
    const keys = browser.client(KeyService);
    const [one, two] = [await keys.createKey({ accountId }), await keys.createKey({ accountId })];
    const [keyId = "", otherId = ""] = [one.key?.keyId, two.key?.keyId];
    await letMinutePass(site.pool);
    const codes = ["0000000", "", "x"];
    codes.push(await actionCode(browser, CodeAction.REVEAL_KEY, otherId));
    await letMinutePass(site.pool);
    codes.push(await actionCode(browser, CodeAction.REVEAL_WEBHOOK_SECRET, accountId));
    await letMinutePass(site.pool);
    const second = site.browser();
    await signInWithCode(second, phone);
    await letMinutePass(site.pool);
    codes.push(await actionCode(second, CodeAction.REVEAL_KEY, keyId));
    for (const code of codes) {
      expect((await failureOf(keys.revealKey({ keyId, code }))).param).toBe("code");
    }
  });

  it("is for the own account's sessions: not for others, operators and the command line", async () => {
    const { keyId } = await newOwner();
    const other = await newOwner();
    const code = await actionCode(other.browser, CodeAction.REVEAL_KEY, keyId);
    expect((await failureOf(other.keys.revealKey({ keyId, code }))).code).toBe(ErrorCode.NOT_FOUND);
    const local = createClient(KeyService, site.gateway.app.transport);
    expect((await failureOf(local.revealKey({ keyId, code }))).code).toBe(ErrorCode.ACCESS_DENIED);
  });

  it("R-KEY-2: a deleted key has no copy, whichever user deletes it", async () => {
    const { browser, keys, keyId } = await newOwner();
    expect((await keys.getKey({ keyId })).key?.canReveal).toBe(true);
    await createClient(KeyService, site.gateway.app.transport).deleteKey({ keyId });
    expect(
      (await site.pool.query("select 1 from key_copy where key_id = $1", [keyId])).rows,
    ).toEqual([]);
    expect((await keys.getKey({ keyId })).key?.canReveal).toBe(false);
    const code = await actionCode(browser, CodeAction.REVEAL_KEY, keyId);
    expect((await failureOf(keys.revealKey({ keyId, code }))).message).toContain("no copy");
  });

  it("never writes the key or the code to the log", async () => {
    const { browser, keys, keyId, secret } = await newOwner();
    const code = await actionCode(browser, CodeAction.REVEAL_KEY, keyId);
    await keys.revealKey({ keyId, code });
    const text = site.gateway.log.join("\n");
    expect(text).toContain("a key was shown again");
    expect(text).not.toContain(secret);
    // The development provider shows it, and states so.
    const lines = site.gateway.log.filter((line) => line.includes(code));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.every((line) => line.includes("development"))).toBe(true);
  });
});

describe("R-KEY-1: copies of keys", () => {
  const keyId = "0190aaaa-0000-7000-8000-000000000001";
  const accounts = ["0190aaaa-0000-7000-8000-00000000000a", "0190aaaa-0000-7000-8000-00000000000b"];
  const copiesOf = (master: number, { isOn = true, isKeySure = true } = {}) => {
    const warnings: string[] = [];
    const masterKey = () => Buffer.alloc(32, master);
    const warn = (message: string): void => void warnings.push(message);
    return {
      copies: createKeyCopies({ pool: site.pool, masterKey, isOn: () => isOn, isKeySure, warn }),
      warnings,
    };
  };

  async function keep(accountId: string, sealed: Buffer | undefined): Promise<void> {
    const text = `insert into key_copy values ($1, $2, $3)
      on conflict (key_id) do update set account_id = excluded.account_id, sealed = excluded.sealed`;
    await site.pool.query(text, [keyId, accountId, sealed]);
  }

  it("copies of keys are not made without a master key, and the key itself is", async () => {
    const warnings: string[] = [];
    const copies = createKeyCopies({
      pool: site.pool,
      masterKey: () => {
        throw new Error("Cannot store a master key in /dev/null/master.key");
      },
      isOn: () => true,
      isKeySure: true,
      warn: (message) => void warnings.push(message),
    });
    expect(await copies.seal(accounts[0] ?? "", keyId, "uas_secret")).toBeUndefined();
    expect(warnings).toEqual(["no copy of a new key is stored: there is no master key"]);
  });

  it("open for their own key, account and master key only", async () => {
    const [mine = "", other = ""] = accounts;
    const { copies } = copiesOf(1);
    const sealed = await copies.seal(mine, keyId, "uas_secret");
    expect(sealed?.includes("uas_secret")).toBe(false);
    await keep(mine, sealed);
    expect(await copies.open(mine, keyId)).toBe("uas_secret");
    expect(await copies.open(other, keyId)).toBeUndefined();
    await expect(copiesOf(2).copies.open(mine, keyId)).rejects.toThrow("another master key");
    await copies.seal(other, keyId, "x");
    await keep(other, sealed);
    await expect(copies.open(other, keyId)).rejects.toThrow("cannot be opened");
  });

  it("copies of keys are not made with a wrong master key, which is reported", async () => {
    const [mine = ""] = accounts;
    const { copies, warnings } = copiesOf(2);
    expect(await copies.seal(mine, keyId, "uas_secret")).toBeUndefined();
    expect(warnings).toHaveLength(1);
  });

  it("copies of keys are not made in a shell whose master key may be another, before a gateway has said which", async () => {
    const mine = "0190aaaa-0000-7000-8000-00000000000c";
    await site.pool.query("delete from data_key");
    expect(await copiesOf(2, { isKeySure: false }).copies.seal(mine, keyId, "x")).toBeUndefined();
    expect((await site.pool.query("select 1 from data_key")).rows).toEqual([]);
    await requireMasterKey(site.pool, () => Buffer.alloc(32, 1));
    expect(await copiesOf(2, { isKeySure: false }).copies.seal(mine, keyId, "x")).toBeUndefined();
    expect(await copiesOf(1, { isKeySure: false }).copies.seal(mine, keyId, "x")).toBeDefined();
  });

  it("copies of keys are neither made nor kept where the operator has switched them off", async () => {
    const [mine = ""] = accounts;
    await keep(mine, Buffer.of(1));
    const { copies } = copiesOf(1, { isOn: false });
    expect(await copies.seal(mine, keyId, "uas_secret")).toBeUndefined();
    expect(await copies.keptOf([keyId])).toEqual(new Set());
    await copies.sweep();
    expect((await site.pool.query("select 1 from key_copy")).rows).toEqual([]);
  });
});

describe("R-HOOK-6: webhook secrets", () => {
  async function newReceiver(): Promise<{ browser: Browser; accountId: string }> {
    const { browser, accountId } = await newOwner();
    return { browser, accountId };
  }

  it("webhook secrets are masked to a session, and shown to who presents a code", async () => {
    const { browser, accountId } = await newReceiver();
    const webhooks = browser.client(WebhookService);
    const masked = (await webhooks.getSecret({ accountId })).secret?.current ?? "";
    expect(masked).toMatch(/^whsec_….{4}$/);
    const code = await actionCode(browser, CodeAction.REVEAL_WEBHOOK_SECRET, accountId);
    const { secret } = await webhooks.getSecret({ accountId, code });
    expect(secret?.current).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect((await failureOf(webhooks.getSecret({ accountId, code }))).param).toBe("code");
    const local = createClient(WebhookService, site.gateway.app.transport);
    expect((await local.getSecret({ accountId })).secret?.current).toBe(secret?.current);
  });

  it("webhook secrets are replaced and promoted with a code only", async () => {
    const { browser, accountId } = await newReceiver();
    const webhooks = browser.client(WebhookService);
    const rotation = await failureOf(webhooks.rotateSecret({ accountId }));
    const promotion = await failureOf(webhooks.promoteSecret({ accountId, dropOld: true }));
    for (const { param } of [rotation, promotion]) expect(param).toBe("code");
    const code = await actionCode(browser, CodeAction.ROTATE_WEBHOOK_SECRET, accountId);
    const rotated = (await webhooks.rotateSecret({ accountId, code })).secret;
    expect(rotated).toMatchObject({ isPromoted: false });
    await letMinutePass(site.pool);
    const next = await actionCode(browser, CodeAction.ROTATE_WEBHOOK_SECRET, accountId);
    const promoted = await webhooks.promoteSecret({ accountId, dropOld: true, code: next });
    expect(promoted.secret).toMatchObject({ current: rotated?.other, other: "" });
  });
});
