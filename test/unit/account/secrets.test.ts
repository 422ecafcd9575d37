/** The small parts: authenticators, passwords, numbers, messages. */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { expect, it, vi } from "vitest";
import { type CodeAction, CodeActionSchema } from "../../../gen/uas/account/v1/session_pb.ts";
import { maskPhone, parsePhone } from "../../../src/account/code/phone.ts";
import { CodePurpose, purposeOf } from "../../../src/account/code/limits.ts";
import { codeText } from "../../../src/account/code/codes.ts";
import { hashPassword, isPassword } from "../../../src/account/user/password.ts";
import { newTotpSecret, totpCode, totpPeriod, totpUri } from "../../../src/account/user/totp.ts";

/**
 * RFC 6238, appendix B, for SHA-1: of its 8 digits the last 6. Its secret is
 * `12345678901234567890`.
 */
const rfcSecret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

it.each([
  [59, "287082"],
  [1_111_111_109, "081804"],
  [1_111_111_111, "050471"],
  [1_234_567_890, "005924"],
  [2_000_000_000, "279037"],
  [20_000_000_000, "353130"],
])("RFC 6238: at %i s the code is %s", (seconds, code) => {
  expect(totpCode(rfcSecret, Math.floor(seconds / 30))).toBe(code);
  expect(totpPeriod(rfcSecret, code, seconds * 1_000)).toBe(Math.floor(seconds / 30));
});

it("an authenticator's clock may be wrong by half a minute, no more", () => {
  const secret = newTotpSecret();
  expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  const nowMs = 1_800_000_000_000;
  const periods = [-2, -1, 0, 1, 2].map((drift) => nowMs / 30_000 + drift);
  const found = periods.map((each) => totpPeriod(secret, totpCode(secret, each), nowMs) === each);
  expect(found).toEqual([false, true, true, true, false]);
});

it("text that is no code of six digits is wrong, and never an error of ours", () => {
  for (const code of [
    "",
    "28708",
    "0287082",
    "２８７０８２",
    "éééééé",
    "28708 ",
    "-28708",
    "28708e",
  ]) {
    expect(totpPeriod(rfcSecret, code, 59_000)).toBeUndefined();
  }
});

it("codes of authenticators are compared in constant time", () => {
  const { timingSafeEqual } = crypto;
  const compare = vi.fn(timingSafeEqual);
  try {
    crypto.timingSafeEqual = compare;
    syncBuiltinESMExports();
    expect(totpPeriod(rfcSecret, "287083", 59_000)).toBeUndefined();
    expect(compare).toHaveBeenCalledTimes(3);
  } finally {
    crypto.timingSafeEqual = timingSafeEqual;
    syncBuiltinESMExports();
  }
});

it("a QR code contains the issuer, the account and the algorithm for authenticators", () => {
  const uri = new URL(totpUri(rfcSecret, "ann lee@example.com"));
  expect(uri.protocol + uri.host).toBe("otpauth:totp");
  expect(decodeURIComponent(uri.pathname)).toBe("/UAS Gateway:ann lee@example.com");
  expect(Object.fromEntries(uri.searchParams)).toEqual({
    secret: rfcSecret,
    issuer: "UAS Gateway",
    algorithm: "SHA1",
    digits: "6",
    period: "30",
  });
});

it("a password is stored as Argon2id with a unique salt, and matches only itself", async () => {
  const [one, two] = await Promise.all([hashPassword("naïve pass"), hashPassword("naïve pass")]);
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
  expect(one).not.toBe(two);
  // Written with a combining mark it is the same.
  expect(await isPassword("nai\u0308ve pass", one)).toBe(true);
  for (const wrong of ["naive pass", "", "x".repeat(100_000)]) {
    expect(await isPassword(wrong, one)).toBe(false);
  }
  expect(await isPassword("naïve pass", null)).toBe(false);
});

it("of a number its ends are shown, and at least four digits hidden", () => {
  expect(maskPhone("+8613800138000")).toBe("+86 138****8000");
  expect(maskPhone("+14155550123")).toBe("+1 415****123");
  for (const number of ["+8613800138000", "+4915112345678", "+6581234567", "+4712345"]) {
    expect(maskPhone(number).match(/\*/g)?.length).toBeGreaterThanOrEqual(4);
    expect(maskPhone(number)).not.toContain(number.slice(-6));
  }
});

it("countries that are not served are refused, whatever their numbers are", () => {
  expect(parsePhone("+86 138-0013-8000", ["CN"])).toEqual({
    number: "+8613800138000",
    callingCode: "86",
  });
  expect(() => parsePhone("+6581234567", ["CN"])).toThrow("use a number of CN");
  // A premium number of a country that is served.
  expect(() => parsePhone("+4919001234567", ["DE"])).toThrow("phone");
});

it("every message says what its code is for, in both languages", () => {
  const actions = CodeActionSchema.values.filter(({ number }) => number > 0);
  const all = [
    ...Object.values(CodePurpose),
    ...actions.map(({ number }) => purposeOf(number as CodeAction)),
  ];
  const texts = all.flatMap((purpose) => [
    codeText(purpose, "1234567", "en"),
    codeText(purpose, "1234567", "zh"),
  ]);
  expect(new Set(texts).size).toBe(2 * all.length);
  for (const text of texts) expect(text).toContain("1234567");
});
