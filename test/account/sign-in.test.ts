/** Signing in to the console, over the network as a browser does it. */
import { ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SignInMethod } from "../../gen/uas/account/v1/session_pb.ts";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { UserRole } from "../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../gen/uas/account/v1/user_service_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { ErrorCode, fromRpcError } from "../../src/errors.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type Browser, openBrowser } from "./browser.ts";

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    sms: { provider: "console", countries: [], dailyMax: 1_000 },
  });
});
afterAll(() => gateway?.close());

let lastNumber = 13_800_138_000;

/** A number that no other test uses. */
function newPhone(): string {
  lastNumber += 1;
  return `+86${lastNumber}`;
}

/** Signs a browser in with a code. */
async function signInWithCode(browser: Browser, phone = newPhone()) {
  const { sent } = await browser.session.sendSignInCode({ phone });
  return browser.session.signInWithCode({ phone, code: sent?.developmentCode ?? "" });
}

/** Signs a browser in by a link. */
async function signInWithLink(browser: Browser, userId = "") {
  const users = createClient(UserService, gateway.app.transport);
  const { token } = await users.createSignInLink({ userId });
  return browser.session.signInWithLink({ token });
}

/** What a call fails with. */
async function failureOf(call: Promise<unknown>) {
  try {
    await call;
  } catch (error) {
    return fromRpcError(ConnectError.from(error));
  }
  throw new Error("it did not fail");
}

describe("a code", () => {
  it("signs in; the first time it makes a user and an account", async () => {
    const browser = openBrowser(gateway.url);
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

  it("is refused to another browser, to another number, and a second time", async () => {
    const [browser, other] = [openBrowser(gateway.url), openBrowser(gateway.url)];
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

describe("a link", () => {
  it("signs the operator in, once", async () => {
    const browser = openBrowser(gateway.url);
    const users = createClient(UserService, gateway.app.transport);
    const { token, user } = await users.createSignInLink({});
    expect(user?.role).toBe(UserRole.OPERATOR);
    await browser.session.signInWithLink({ token });
    const accounts = await browser.client(AccountService).listAccounts({});
    expect(accounts.accounts.map(({ accountId }) => accountId)).toContain(user?.accountId);
    const again = failureOf(openBrowser(gateway.url).session.signInWithLink({ token }));
    expect((await again).code).toBe(ErrorCode.UNAUTHENTICATED);
  });

  it("is for the one whom the operator names", async () => {
    const { user } = await signInWithCode(openBrowser(gateway.url));
    const browser = openBrowser(gateway.url);
    expect((await signInWithLink(browser, user?.userId)).user?.userId).toBe(user?.userId);
    expect((await failureOf(browser.client(AccountService).listAccounts({}))).code).toBe(
      ErrorCode.ACCESS_DENIED,
    );
  });
});
