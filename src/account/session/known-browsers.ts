/**
 * Recognises browsers with which a user has signed in before (R-KEY-5). Failures of strangers do
 * not count against them, so strangers cannot lock an owner out. Stateless: the browser stores a
 * list of sealed marks in a cookie that no script can read.
 *
 * A mark is valid for the password and the authenticator with which it was made. Each mark has a
 * separate count of guesses: marks collected with a stolen password would otherwise multiply the
 * guesses at a later authenticator.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import type { BrowserSession } from "../../core/browser-session.ts";
import type { Clock } from "../../core/clock.ts";
import type { UserRow } from "../user/store.ts";

/** A user, with the secrets that a mark is bound to. */
type MarkedUser = Pick<UserRow, "id" | "passwordHash" | "totp">;

/** The functions of {@link createKnownBrowsers}. */
export interface KnownBrowsers {
  /**
   * The id of a browser with which this user has signed in before; undefined if there is no proof
   * of that.
   */
  idOf(browser: BrowserSession, user: MarkedUser): string | undefined;
  /**
   * Marks a browser after a complete sign-in, and after its session has changed the password or the
   * authenticator.
   */
  remember(browser: BrowserSession, user: MarkedUser): void;
}

/** Time for which a browser is known after its last sign-in: a year. */
const knownBrowserMs = 365 * 24 * 60 * 60 * 1_000;

/** Maximum number of users of one browser; beyond it, the user who signed in first is dropped. */
const usersMax = 4;

/** A mark: the browser's id, the user, its expiry in milliseconds, and its proof. */
const markForm = /^([\w-]{22})\.([0-9a-f-]{36})\.(\d{1,15})\.([\w-]{43})$/;

interface Mark {
  readonly text: string;
  readonly browserId: string;
  readonly userId: string;
  readonly expireMs: number;
  readonly mac: string;
}

/** Creates the recognition. @param masterKey returns the 32-byte master key; called on first use */
export function createKnownBrowsers(
  masterKey: () => Uint8Array,
  clock: Pick<Clock, "now">,
): KnownBrowsers {
  let kept: Buffer | undefined;
  const key = (): Buffer =>
    (kept ??= Buffer.from(hkdfSync("sha256", masterKey(), "", "uas known browser", 32)));
  const macOf = ({ browserId, expireMs }: Omit<Mark, "text" | "mac">, user: MarkedUser): Buffer => {
    const secrets = [user.passwordHash ?? "", Buffer.from(user.totp ?? []).toString("base64url")];
    return createHmac("sha256", key())
      .update(JSON.stringify([browserId, user.id, expireMs, ...secrets]))
      .digest();
  };
  const idOf = (browser: BrowserSession, user: MarkedUser): string | undefined => {
    const mark = marksOf(browser, clock.now()).find(({ userId }) => userId === user.id);
    if (mark === undefined) return undefined;
    const isRight = timingSafeEqual(macOf(mark, user), Buffer.from(mark.mac, "base64url"));
    return isRight ? mark.browserId : undefined;
  };
  return {
    idOf,
    remember(browser, user) {
      const browserId = idOf(browser, user) ?? randomBytes(16).toString("base64url");
      const nowMs = clock.now();
      const expireMs = nowMs + knownBrowserMs;
      const mac = macOf({ browserId, userId: user.id, expireMs }, user).toString("base64url");
      const others = marksOf(browser, nowMs).filter(({ userId }) => userId !== user.id);
      const all = [
        `${browserId}.${user.id}.${expireMs}.${mac}`,
        ...others.slice(0, usersMax - 1).map(({ text }) => text),
      ];
      browser.remember(all.join("~"), knownBrowserMs);
    },
  };
}

/** The marks that have not expired. They are verified later, with the data of their users. */
function marksOf({ known = "" }: BrowserSession, nowMs: number): Mark[] {
  return known.split("~", usersMax).flatMap((text) => {
    const [, browserId = "", userId = "", expire = "", mac = ""] = markForm.exec(text) ?? [];
    const expireMs = Number(expire);
    return mac !== "" && expireMs > nowMs ? [{ text, browserId, userId, expireMs, mac }] : [];
  });
}
