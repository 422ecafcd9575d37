/** R-KEY-5: a stranger can neither guess a code nor lock the owner out. */
import { setImmediate } from "node:timers/promises";
import type { Pool } from "pg";
import { describe, expect, it } from "vitest";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { totpCode } from "../../../src/account/user/totp.ts";
import { totpFreeGuesses, totpGuessesMax } from "../../../src/account/session/failures.ts";
import { codeChecksMax, codeLifeGuessesMax, failuresMax } from "../../../src/core/limits.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
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
const password = "correct horse battery";

const code = async (call: Promise<unknown>): Promise<ErrorCode> => (await failureOf(call)).code;

/** Three codes for a number, each tried wrongly as often as it can be. */
async function attack(phone: string): Promise<void> {
  const stranger = site.browser();
  for (let sent = 0; sent < 3; sent++) {
    await letMinutePass(site.pool);
    await stranger.session.sendSignInCode({ phone });
    for (let count = 0; count < codeChecksMax; count++) {
      await failureOf(stranger.session.signInWithCode({ phone, code: "0000000" }));
    }
  }
}

/** Resolves when a change of a user waits for another. */
async function blocked(pool: Pool): Promise<void> {
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock'
    and datname = current_database() and query ilike 'update "console_user"%'`;
  while ((await pool.query(waiting)).rowCount === 0) await setImmediate();
}

/** A member with a password and an authenticator, signed in with `browser`. */
async function withTotp(browser: Browser) {
  const { user } = await site.newMember(browser);
  const email = `${user?.userId}@example.com`;
  await browser.users.setPassword({ email, password });
  const { secret } = await browser.users.startTotp({});
  const periodNow = (): number => Math.floor(Date.now() / 30_000);
  const confirm = () => browser.users.confirmTotp({ code: totpCode(secret, period - 1) });
  let period = periodNow();
  // The period may end just now; then its code is too old.
  await confirm().catch(async () => {
    period = periodNow();
    await confirm();
  });
  const wrong = totpCode(secret, period - 9);
  return { email, secret, period, wrong };
}

describe("a stranger with wrong codes", () => {
  it("a stranger with wrong codes does not keep the owner from signing in, in a new browser or in a known one", async () => {
    const [phone, owner] = [newPhone(), site.browser()];
    await signInWithCode(owner, phone);
    await attack(phone);
    await letMinutePass(site.pool);
    expect((await signInWithCode(site.browser(), phone)).isNew).toBe(false);
    await owner.session.signOut({});
    expect((await signInWithCode(owner, phone)).isNew).toBe(false);
  });

  it("a stranger with wrong codes does not use up the codes of a known browser or of a session", async () => {
    const [phone, owner, stranger] = [newPhone(), site.browser(), site.browser()];
    await signInWithCode(owner, phone);
    await letMinutePass(site.pool);
    await stranger.session.sendSignInCode({ phone });
    // Another code to this number within a minute, for a stranger and for the owner.
    const limited = await failureOf(site.browser().session.sendSignInCode({ phone }));
    expect(limited.code).toBe(ErrorCode.RATE_LIMIT_EXCEEDED);
    await owner.session.signOut({});
    expect((await signInWithCode(owner, phone)).isNew).toBe(false);
  });

  it("a stranger with wrong codes does not keep a session from its codes for actions", async () => {
    const [phone, owner] = [newPhone(), site.browser()];
    const { user } = await signInWithCode(owner, phone);
    await attack(phone);
    const step = await actionCode(owner, CodeAction.SET_PASSWORD);
    const email = `${user?.userId}@example.com`;
    await owner.users.setPassword({ email, password, code: step });
    expect((await owner.session.getSession({})).user?.hasPassword).toBe(true);
  });

  it("a stranger with wrong codes has 900 guesses over the life of a number, then its codes are for browsers and sessions of its owner", async () => {
    const [phone, owner, stranger] = [newPhone(), site.browser(), site.browser()];
    const { user } = await signInWithCode(owner, phone);
    const guess = async (): Promise<string> => {
      const wrong = stranger.session.signInWithCode({ phone, code: "0000000" });
      return (await failureOf(wrong)).message;
    };
    await letMinutePass(site.pool);
    await stranger.session.sendSignInCode({ phone });
    expect(await guess()).toContain("the code is wrong");
    const { rowCount } = await site.pool.query(
      "update code_guess set wrong = $1 where wrong = 1 and last_time > now() - interval '1 minute'",
      [codeLifeGuessesMax - 1],
    );
    expect(rowCount).toBe(1);
    expect(await guess()).toContain("the code is wrong");
    expect(await guess()).toContain("use a browser that you have signed in with before");
    await letMinutePass(site.pool);
    const refused = await failureOf(site.browser().session.sendSignInCode({ phone }));
    expect([refused.code, refused.message]).toEqual([
      ErrorCode.RATE_LIMIT_EXCEEDED,
      expect.stringContaining("too many wrong codes were entered for this number"),
    ]);
    // The owner's session gets codes for actions, and the owner's browser signs in.
    const step = await actionCode(owner, CodeAction.SET_PASSWORD);
    await owner.users.setPassword({ email: `${user?.userId}@example.com`, password, code: step });
    await owner.session.signOut({});
    await letMinutePass(site.pool);
    expect((await signInWithCode(owner, phone)).isNew).toBe(false);
  });

  it("a stranger who sends wrong codes is stopped", async () => {
    const [phone, stranger] = [newPhone(), site.browser()];
    for (let sent = 0; sent < 4; sent++) {
      await letMinutePass(site.pool);
      const { sent: told } = await stranger.session.sendSignInCode({ phone });
      const shown = told?.developmentCode ?? "";
      if (sent === 3) {
        const failure = await failureOf(stranger.session.signInWithCode({ phone, code: shown }));
        expect(failure.message).toContain("too many wrong codes");
      }
      for (let count = 0; count < codeChecksMax; count++) {
        await failureOf(stranger.session.signInWithCode({ phone, code: "0000000" }));
      }
    }
  });
});

describe("a stranger with wrong passwords", () => {
  it("a stranger with wrong passwords keeps other strangers out for a while, and never a browser of the owner or a session", async () => {
    const owner = site.browser();
    const { email, secret, period } = await withTotp(owner);
    await owner.session.signOut({});
    const totp = { email, password, totpCode: totpCode(secret, period) };
    await owner.session.signInWithPassword(totp);
    const wrong = { email, password: "a wrong password" };
    for (let count = 0; count < 10; count++) {
      await failureOf(site.browser().session.signInWithPassword(wrong));
    }
    expect(await code(site.browser().session.signInWithPassword({ email, password }))).toBe(
      ErrorCode.RATE_LIMIT_EXCEEDED,
    );
    // Its own wrong one is wrong, not one too many.
    expect(await code(owner.session.signInWithPassword(wrong))).toBe(ErrorCode.UNAUTHENTICATED);
    const next = { password: "another password of mine", currentPassword: password };
    await owner.users.setPassword({ email: "", ...next });
    await owner.session.signOut({});
    const last = { email, password: next.password, totpCode: totpCode(secret, period + 1) };
    expect((await owner.session.signInWithPassword(last)).user?.hasTotp).toBe(true);
    await site.pool.query("truncate sign_in_failure");
  });
});

describe("an authenticator", () => {
  it("an authenticator is guessed with less than 1e-4 over its life, and its owner still gets in", async () => {
    const owner = site.browser();
    const { email, secret, wrong } = await withTotp(owner);
    const guess = async () => {
      // Simulates the passing of time: neither the limit per minute nor the growing wait applies.
      await site.pool.query("truncate sign_in_failure");
      await site.pool.query("update code_guess set last_time = last_time - interval '1 day'");
      const right = { email, password, totpCode: wrong };
      return code(site.browser().session.signInWithPassword(right));
    };
    for (let count = 0; count < totpGuessesMax; count++) {
      expect(await guess()).toBe(ErrorCode.INVALID_REQUEST);
    }
    expect(await guess()).toBe(ErrorCode.RATE_LIMIT_EXCEEDED);
    expect((totpGuessesMax * 3) / 1e6).toBeLessThan(1e-4);
    // So many guesses take longer than a code is valid on a busy machine.
    const period = Math.floor(Date.now() / 30_000);
    const totp = { email, password, totpCode: totpCode(secret, period) };
    expect(await code(site.browser().session.signInWithPassword(totp))).toBe(
      ErrorCode.RATE_LIMIT_EXCEEDED,
    );
    await owner.session.signOut({});
    expect((await owner.session.signInWithPassword(totp)).user?.hasTotp).toBe(true);
    // A new one has a new count.
    await owner.users.removeTotp({ code: totpCode(secret, period + 1) });
    await site.pool.query("update console_user set totp_step = null");
    const { secret: next } = await owner.users.startTotp({});
    await owner.users.confirmTotp({ code: totpCode(next, period) });
    const again = { email, password, totpCode: totpCode(next, period + 1) };
    expect((await site.browser().session.signInWithPassword(again)).user?.hasTotp).toBe(true);
  });

  it("browsers that signed in before an authenticator was added guess at it as strangers, all with one count", async () => {
    const [owner, setup] = [site.browser(), site.browser()];
    const { user } = await site.newMember(setup);
    const email = `${user?.userId}@example.com`;
    await setup.users.setPassword({ email, password });
    const thieves = Array.from({ length: 3 }, () => site.browser());
    for (const browser of [owner, ...thieves]) {
      await browser.session.signInWithPassword({ email, password });
    }
    const { secret } = await owner.users.startTotp({});
    const period = Math.floor(Date.now() / 30_000);
    await owner.users.confirmTotp({ code: totpCode(secret, period) });
    await owner.session.signOut({});
    const wrong = { email, password, totpCode: totpCode(secret, period - 9) };
    const guesses: ErrorCode[] = [];
    for (let count = 0; count <= totpFreeGuesses; count++) {
      const thief = thieves[count % thieves.length];
      if (thief !== undefined) guesses.push(await code(thief.session.signInWithPassword(wrong)));
    }
    expect(guesses).toEqual([
      ...Array.from({ length: totpFreeGuesses }, () => ErrorCode.INVALID_REQUEST),
      ErrorCode.RATE_LIMIT_EXCEEDED,
    ]);
    // The browser that added it stays known.
    const right = { email, password, totpCode: totpCode(secret, period + 1) };
    expect((await owner.session.signInWithPassword(right)).user?.hasTotp).toBe(true);
  });

  it("a password that is changed makes all other browsers strangers, and not the one that changed it", async () => {
    const [owner, other] = [site.browser(), site.browser()];
    const { email, secret, period } = await withTotp(owner);
    const totp = (step: number) => totpCode(secret, period + step);
    await other.session.signInWithPassword({ email, password, totpCode: totp(0) });
    const next = "another password of mine";
    await owner.users.setPassword({ email: "", password: next, currentPassword: password });
    await owner.session.signOut({});
    const wrong = { email, password };
    for (let count = 0; count < failuresMax.subject.max; count++) {
      expect(await code(other.session.signInWithPassword(wrong))).toBe(ErrorCode.UNAUTHENTICATED);
    }
    expect(await code(site.browser().session.signInWithPassword(wrong))).toBe(
      ErrorCode.RATE_LIMIT_EXCEEDED,
    );
    const right = { email, password: next, totpCode: totp(1) };
    expect((await owner.session.signInWithPassword(right)).user?.hasTotp).toBe(true);
    await site.pool.query("truncate sign_in_failure");
  });

  it("a sign-in under way while an authenticator is added opens no session", async () => {
    const [owner, thief] = [site.browser(), site.browser()];
    const { user } = await site.newMember(owner);
    const email = `${user?.userId}@example.com`;
    await owner.users.setPassword({ email, password });
    const change = await site.pool.connect();
    try {
      await change.query("begin");
      await change.query("update console_user set totp = 'sealed' where id = $1", [user?.userId]);
      const signIn = failureOf(thief.session.signInWithPassword({ email, password }));
      await blocked(site.pool);
      await change.query("commit");
      expect((await signIn).code).toBe(ErrorCode.UNAUTHENTICATED);
    } finally {
      change.release();
    }
    expect(thief.cookie).toBeUndefined();
  });

  it("an authenticator makes strangers wait longer after each wrong code, and not the session of its owner", async () => {
    const owner = site.browser();
    const { email, secret, period, wrong } = await withTotp(owner);
    const attempt = { email, password, totpCode: wrong };
    for (let count = 0; count < totpFreeGuesses; count++) {
      expect(await code(site.browser().session.signInWithPassword(attempt))).toBe(
        ErrorCode.INVALID_REQUEST,
      );
    }
    const first = await failureOf(site.browser().session.signInWithPassword(attempt));
    expect(first.code).toBe(ErrorCode.RATE_LIMIT_EXCEEDED);
    await site.pool.query("update code_guess set last_time = last_time - interval '30 s'");
    await failureOf(site.browser().session.signInWithPassword(attempt));
    const second = await failureOf(site.browser().session.signInWithPassword(attempt));
    expect(second.retryAfterSeconds).toBeGreaterThan(first.retryAfterSeconds ?? 0);
    // A link of a moment ago would need no code.
    await site.pool.query("update console_session set create_time = now() - interval '1 hour'");
    expect(await code(owner.users.removeTotp({ code: wrong }))).toBe(ErrorCode.INVALID_REQUEST);
    const { user } = await owner.users.removeTotp({ code: totpCode(secret, period) });
    expect(user?.hasTotp).toBe(false);
    await site.pool.query("truncate sign_in_failure");
  });
});
