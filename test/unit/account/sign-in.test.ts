/** Signing in to the console, over the network as a browser does it. */
import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { startGateway } from "../../support/gateway.ts";
import { createPhones, failureOf, letMinutePass, openBrowser, signInWithCode } from "./browser.ts";
import { useConsole } from "./console.ts";

const site = useConsole();
const newPhone = createPhones();

describe("a code", () => {
  it("signs in; the first time it makes a user and an account", async () => {
    const browser = site.browser();
    const phone = newPhone();
    const { sent } = await browser.session.sendSignInCode({
      phone: `+86 ${phone.slice(3, 6)} ${phone.slice(6)}`,
    });
    expect(sent?.developmentCode).toMatch(/^\d{7}$/);
    expect(sent?.maskedPhone).toMatch(/^\+86 138\*{4}\d{4}$/);
    const first = await browser.session.signInWithCode({
      phone,
      code: sent?.developmentCode ?? "",
    });
    expect(first).toMatchObject({ isNew: true, user: { role: UserRole.MEMBER } });
    expect(first.session).toMatchObject({ method: SignInMethod.CODE, isCurrent: true });
    const { user, account } = await browser.session.getSession({});
    expect(user?.userId).toBe(first.user?.userId);
    expect(account).toMatchObject({ accountId: user?.accountId, name: user?.maskedPhone });
    expect(
      (await browser.client(KeyService).listKeys({ accountId: user?.accountId ?? "" })).keys,
    ).toEqual([]);
  });

  it("a code is refused to another browser, to another number, and a second time", async () => {
    const [browser, other] = [site.browser(), site.browser()];
    const phone = newPhone();
    const { sent } = await browser.session.sendSignInCode({ phone });
    const code = sent?.developmentCode ?? "";
    expect((await failureOf(other.session.signInWithCode({ phone, code }))).param).toBe("code");
    const wrongNumber = browser.session.signInWithCode({ phone: newPhone(), code });
    expect((await failureOf(wrongNumber)).param).toBe("code");
    await browser.session.signInWithCode({ phone, code });
    expect((await failureOf(browser.session.signInWithCode({ phone, code }))).param).toBe("code");
  });
});

describe("a gateway that is closed", () => {
  it("a closed gateway answers unknown numbers like the others, and admits users that the operator has created", async () => {
    const closed = await startGateway({
      vendors: { demo: { kind: "demo", baseUrl: "" } },
      sms: { provider: "console", countries: ["CN"], dailyMax: 100 },
      console: { signUp: false },
    });
    try {
      const { accountId } = await closed.customer();
      const phones = [newPhone(), newPhone()] as const;
      const users = createClient(UserService, closed.app.transport);
      await users.createUser({ accountId, phone: phones[1] });
      const browsers = [openBrowser(closed.url), openBrowser(closed.url)] as const;
      const sent = await Promise.all(
        browsers.map((browser, index) =>
          browser.session.sendSignInCode({ phone: phones[index] ?? "" }),
        ),
      );
      const shapes = sent.map(({ sent: each }) => Object.keys(each ?? {}).toSorted());
      expect(shapes[0]).toEqual(shapes[1]);
      const [unknown, known] = sent.map(({ sent: each }) => each?.developmentCode ?? "");
      const attempt = (index: 0 | 1, code = "") =>
        browsers[index].session.signInWithCode({ phone: phones[index], code });
      const wrong = await failureOf(attempt(1, "0"));
      expect((await failureOf(attempt(0, unknown))).message).toBe(wrong.message);
      expect((await attempt(1, known)).isNew).toBe(false);
    } finally {
      await closed.close();
    }
  });
});

describe("a link", () => {
  it("signs the operator in, once", async () => {
    const browser = site.browser();
    const users = createClient(UserService, site.gateway.app.transport);
    const { token, user } = await users.createSignInLink({});
    expect(user?.role).toBe(UserRole.OPERATOR);
    await browser.session.signInWithLink({ token });
    const accounts = await browser.client(AccountService).listAccounts({});
    expect(accounts.accounts.map(({ accountId }) => accountId)).toContain(user?.accountId);
    const again = failureOf(site.browser().session.signInWithLink({ token }));
    expect((await again).code).toBe(ErrorCode.UNAUTHENTICATED);
  });

  it("a link is for the one whom the operator names", async () => {
    const { user } = await signInWithCode(site.browser(), newPhone());
    const browser = site.browser();
    expect((await site.signInWithLink(browser, user?.userId)).user?.userId).toBe(user?.userId);
    expect((await failureOf(browser.client(AccountService).listAccounts({}))).code).toBe(
      ErrorCode.ACCESS_DENIED,
    );
  });
});

it("results of codes and kinds of sign-in are counted", async () => {
  const { registry } = site.gateway.app.metrics;
  const count = async (name: string, label: string): Promise<number> => {
    const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
    return values.find(({ labels }) => Object.values(labels).includes(label))?.value ?? 0;
  };
  const names = [
    ["uas_sms_sends_total", "sent"],
    ["uas_sms_sends_total", "limited"],
    ["uas_code_checks_total", "right"],
    ["uas_code_checks_total", "wrong"],
    ["uas_console_sign_ins_total", "code"],
  ] as const;
  const all = () => Promise.all(names.map(([name, label]) => count(name, label)));
  const before = await all();
  const browser = site.browser();
  const phone = newPhone();
  const { sent } = await browser.session.sendSignInCode({ phone });
  await failureOf(browser.session.sendSignInCode({ phone }));
  await failureOf(browser.session.signInWithCode({ phone, code: "0" }));
  await browser.session.signInWithCode({ phone, code: sent?.developmentCode ?? "" });
  expect((await all()).map((value, index) => value - (before[index] ?? 0))).toEqual([
    1, 1, 1, 1, 1,
  ]);
});

describe("sessions", () => {
  it("sessions are listed and revoked, one or all others, and sign-out takes the cookie away", async () => {
    const phone = newPhone();
    const [browser, second, third] = [1, 2, 3].map(() => site.browser());
    if (!browser || !second || !third) throw new Error("unreachable");
    for (const each of [browser, second, third]) {
      await signInWithCode(each, phone);
      await letMinutePass(site.pool);
    }
    const { sessions } = await browser.session.listSessions({});
    expect(sessions.map(({ isCurrent }) => isCurrent)).toEqual([false, false, true]);
    const [newest] = sessions;
    await browser.session.revokeSession({ sessionId: newest?.sessionId ?? "" });
    expect((await failureOf(third.session.getSession({}))).code).toBe(ErrorCode.UNAUTHENTICATED);
    expect((await browser.session.revokeOtherSessions({})).revokedCount).toBe(1);
    expect((await failureOf(second.session.getSession({}))).code).toBe(ErrorCode.UNAUTHENTICATED);
    const { cookie } = browser;
    await browser.session.signOut({});
    expect(browser.cookie).toBeUndefined();
    browser.cookie = cookie;
    expect((await failureOf(browser.session.getSession({}))).code).toBe(ErrorCode.UNAUTHENTICATED);
  });

  it("only operators see and end the sessions of others", async () => {
    const [mine, other] = [site.browser(), site.browser()];
    const { user, session } = await signInWithCode(mine, newPhone());
    await signInWithCode(other, newPhone());
    const listing = other.session.listSessions({ userId: user?.userId ?? "" });
    expect((await failureOf(listing)).code).toBe(ErrorCode.NOT_FOUND);
    await other.session.revokeSession({ sessionId: session?.sessionId ?? "" });
    expect((await mine.session.getSession({})).session?.sessionId).toBe(session?.sessionId);
    const operator = site.browser();
    await site.signInWithLink(operator);
    const seen = await operator.session.listSessions({ userId: user?.userId ?? "" });
    expect(seen.sessions.map(({ sessionId }) => sessionId)).toEqual([session?.sessionId]);
    await operator.session.revokeSession({ sessionId: session?.sessionId ?? "" });
    expect((await failureOf(mine.session.getSession({}))).code).toBe(ErrorCode.UNAUTHENTICATED);
  });

  it("sessions end with their user", async () => {
    const browser = site.browser();
    const { user } = await signInWithCode(browser, newPhone());
    const operator = site.browser();
    await site.signInWithLink(operator);
    await operator.users.deleteUser({ userId: user?.userId ?? "" });
    expect((await failureOf(browser.session.getSession({}))).code).toBe(ErrorCode.UNAUTHENTICATED);
  });
});
