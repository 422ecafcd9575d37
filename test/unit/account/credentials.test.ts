/** Credentials of users, and how users change them. */
import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { CodeAction, SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { totpCode } from "../../../src/account/user/totp.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { actionCode, createPhones, failureOf, letMinutePass, signInWithCode } from "./browser.ts";
import { useConsole } from "./console.ts";

const password = "correct horse battery staple";
const site = useConsole();
const newPhone = createPhones();

describe("a password", () => {
  it("signs in once it is set; wrong ones get the same answer for every account", async () => {
    const browser = site.browser();
    await site.signInWithLink(browser);
    const { user } = await browser.users.setPassword({ email: " Ada@Example.com ", password });
    expect(user).toMatchObject({ email: "ada@example.com", hasPassword: true });
    const other = site.browser();
    const signIn = other.session.signInWithPassword({ email: "ADA@example.com", password });
    expect((await signIn).session?.method).toBe(SignInMethod.PASSWORD);
    const wrong = [
      { email: "ada@example.com", password: "not the password" },
      { email: "nobody@example.com", password },
      { email: "", password: "" },
    ];
    const failures = await Promise.all(
      wrong.map((each) => failureOf(other.session.signInWithPassword(each))),
    );
    expect(new Set(failures.map(({ code, message }) => `${code} ${message}`)).size).toBe(1);
    expect(failures[0]?.code).toBe(ErrorCode.UNAUTHENTICATED);
  });

  it("a password is changed only by a user who knows it, and ends the other sessions", async () => {
    const [browser, other] = [site.browser(), site.browser()];
    const phone = newPhone();
    const { user } = await signInWithCode(browser, phone);
    const first = { email: `${user?.userId}@example.com`, password };
    // A user with a number must prove it, also for the first password.
    const bare = await failureOf(browser.users.setPassword(first));
    expect(bare.param).toBe("current_password");
    await letMinutePass(site.pool);
    const code = await actionCode(browser, CodeAction.SET_PASSWORD);
    await browser.users.setPassword({ ...first, code });
    await other.session.signInWithPassword(first);
    const next = { email: "", password: "another password of mine" };
    const wrong = browser.users.setPassword({ ...next, currentPassword: "no" });
    expect((await failureOf(wrong)).param).toBe("current_password");
    await browser.users.setPassword({ ...next, currentPassword: password });
    expect((await failureOf(other.session.getSession({}))).code).toBe(ErrorCode.UNAUTHENTICATED);
    expect((await browser.session.getSession({})).user?.hasPassword).toBe(true);
  });

  it.each(["short", "aaaaaaaaaaaaaaaaaaaa", "x".repeat(257)])(
    "a password must not be %s",
    async (bad) => {
      const browser = site.browser();
      await site.signInWithLink(browser);
      const call = browser.users.setPassword({ email: "op@example.com", password: bad });
      expect((await failureOf(call)).param).toBe("password");
    },
  );

  it("a password is not asked for any more after too many wrong ones", async () => {
    const browser = site.browser();
    const attempt = { email: "guessed@example.com", password: "a wrong password" };
    for (let count = 0; count < 10; count++)
      await failureOf(browser.session.signInWithPassword(attempt));
    const failure = await failureOf(browser.session.signInWithPassword(attempt));
    expect(failure.code).toBe(ErrorCode.RATE_LIMIT_EXCEEDED);
    expect(failure.retryAfterSeconds).toBeGreaterThan(800);
    await site.pool.query("truncate sign_in_failure");
    // Nor if all of them come at once, before any of them is known to be wrong.
    const crowd = Array.from({ length: 14 }, () =>
      failureOf(site.browser().session.signInWithPassword(attempt)),
    );
    const codes = (await Promise.all(crowd)).map(({ code }) => code);
    expect(codes.filter((code) => code === ErrorCode.UNAUTHENTICATED)).toHaveLength(10);
    await site.pool.query("truncate sign_in_failure");
  });
});

describe("an authenticator", () => {
  it("an authenticator is required from its confirmation on, each code once, and never instead of the rest", async () => {
    const browser = site.browser();
    const { user } = await site.newMember(browser);
    const email = `${user?.userId}@example.com`;
    await browser.users.setPassword({ email, password });
    const { secret, uri } = await browser.users.startTotp({});
    expect(uri).toContain(`secret=${secret}`);
    const now = Math.floor(Date.now() / 30_000);
    const other = site.browser();
    // Not confirmed: not asked for.
    await other.session.signInWithPassword({ email, password });
    const wrong = await failureOf(browser.users.confirmTotp({ code: totpCode(secret, now - 9) }));
    expect(wrong.param).toBe("totp_code");
    const confirmed = await browser.users.confirmTotp({ code: totpCode(secret, now) });
    expect(confirmed.user?.hasTotp).toBe(true);
    const signIn = (shown: string, tried = password) =>
      other.session.signInWithPassword({ email, password: tried, totpCode: shown });
    expect((await failureOf(signIn(""))).param).toBe("totp_code");
    expect((await failureOf(signIn(totpCode(secret, now)))).param).toBe("totp_code");
    const next = totpCode(secret, now + 1);
    expect((await failureOf(signIn(next, "a wrong password"))).code).toBe(
      ErrorCode.UNAUTHENTICATED,
    );
    expect((await signIn(next)).user?.hasTotp).toBe(true);
  });

  it("an authenticator is required besides a code of an SMS, which stays valid until then", async () => {
    const phone = newPhone();
    const browser = site.browser();
    await signInWithCode(browser, phone);
    const { secret } = await browser.users.startTotp({});
    const now = Math.floor(Date.now() / 30_000);
    await browser.users.confirmTotp({ code: totpCode(secret, now - 1) });
    await letMinutePass(site.pool);
    const other = site.browser();
    const { sent } = await other.session.sendSignInCode({ phone });
    const code = sent?.developmentCode ?? "";
    const half = await failureOf(other.session.signInWithCode({ phone, code }));
    expect(half.param).toBe("totp_code");
    const both = { phone, code, totpCode: totpCode(secret, now) };
    expect((await other.session.signInWithCode(both)).isNew).toBe(false);
  });

  it("an operator's number alone never signs in, with or without an authenticator", async () => {
    const phone = newPhone();
    const users = createClient(UserService, site.gateway.app.transport);
    const { user } = await users.createSignInLink({});
    const accountId = user?.accountId ?? "";
    await users.createUser({ accountId, role: UserRole.OPERATOR, phone });
    const failure = await failureOf(signInWithCode(site.browser(), phone));
    expect(failure.code).toBe(ErrorCode.UNAUTHENTICATED);
    expect(failure.message).toContain("uas console link");
  });
});

describe("a name", () => {
  it("UpdateUser changes the user who calls, and refuses the id of another", async () => {
    const [browser, other] = [site.browser(), site.browser()];
    await signInWithCode(browser, newPhone());
    const { user: stranger } = await signInWithCode(other, newPhone());
    const updateMask = { paths: ["name"] };
    const own = await browser.users.updateUser({ user: { name: "Ada" }, updateMask });
    const { userId } = own.user ?? { userId: "" };
    const renamed = { userId, name: "Ada L." };
    expect((await browser.users.updateUser({ user: renamed, updateMask })).user?.name).toBe(
      "Ada L.",
    );
    const foreign = { userId: stranger?.userId ?? "none", name: "Eve" };
    const failure = await failureOf(browser.users.updateUser({ user: foreign, updateMask }));
    expect([failure.code, failure.param]).toEqual([ErrorCode.ACCESS_DENIED, "user.user_id"]);
  });
});

describe("a number", () => {
  it("a number is changed with codes of both, the new one and the present one", async () => {
    const [old, next] = [newPhone(), newPhone()];
    const browser = site.browser();
    await signInWithCode(browser, old);
    const { sent } = await browser.users.sendPhoneCode({ phone: next });
    const change = { phone: next, code: sent?.developmentCode ?? "" };
    expect((await failureOf(browser.users.setPhone(change))).param).toBe("current_code");
    await letMinutePass(site.pool);
    const currentCode = await actionCode(browser, CodeAction.CHANGE_PHONE);
    const { user } = await browser.users.setPhone({ ...change, currentCode });
    expect(user?.maskedPhone.slice(-4)).toBe(next.slice(-4));
    await letMinutePass(site.pool);
    expect((await signInWithCode(site.browser(), old)).isNew).toBe(true);
  });

  it("a phone number belongs to one user only", async () => {
    const phone = newPhone();
    await signInWithCode(site.browser(), phone);
    await letMinutePass(site.pool);
    const browser = site.browser();
    await site.newMember(browser);
    const { sent } = await browser.users.sendPhoneCode({ phone });
    const taken = browser.users.setPhone({ phone, code: sent?.developmentCode ?? "" });
    expect((await failureOf(taken)).param).toBe("phone");
  });

  it.each([
    "",
    "13800138000",
    "+861",
    "+8610123456789012345",
    "+80012345678",
    "+442079460000",
    "+86 138x0138000 ext. 5",
  ])("a number must be one of a mobile phone, in international form: %s", async (phone) => {
    const failure = await failureOf(site.browser().session.sendSignInCode({ phone }));
    expect(failure).toMatchObject({ code: ErrorCode.INVALID_REQUEST, param: "phone" });
  });
});
