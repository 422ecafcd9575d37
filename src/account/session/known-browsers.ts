/**
 * Recognises browsers with which a user has signed in before (R-KEY-5): failures of strangers do not count against them,
 * so nobody can lock an owner out. Stateless: the browser keeps a list of sealed marks in a cookie that no script can
 * read.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import type { BrowserSession } from "../../core/browser-session.ts";

/** See {@link createKnownBrowsers}. */
export interface KnownBrowsers {
  /** The id of a browser with which this user has signed in before; `undefined`: there is no proof of that. */
  idOf(browser: BrowserSession, userId: string): string | undefined;
  /** Marks a browser after a complete sign-in. */
  remember(browser: BrowserSession, userId: string): void;
}

/** How long a browser is known after its last sign-in, in milliseconds: a year. */
const knownBrowserMs = 365 * 24 * 60 * 60 * 1_000;

/** How many users of one browser are remembered; then the one that signed in first is forgotten. */
const usersMax = 4;

/** A mark: the browser's id, the user, when it expires in milliseconds, and what proves it. */
const markForm = /^([\w-]{22})\.([0-9a-f-]{36})\.(\d{1,15})\.([\w-]{43})$/;

interface Mark {
  readonly text: string;
  readonly browserId: string;
  readonly userId: string;
}

/** Creates the recognition. @param masterKey returns the 32-byte master key; called on first use */
export function createKnownBrowsers(masterKey: () => Uint8Array): KnownBrowsers {
  let kept: Buffer | undefined;
  const key = (): Buffer =>
    (kept ??= Buffer.from(hkdfSync("sha256", masterKey(), "", "uas known browser", 32)));
  const macOf = (text: string): Buffer => createHmac("sha256", key()).update(text).digest();
  const read = (text: string): Mark | undefined => {
    const [, browserId = "", userId = "", expireMs = "", mac = ""] = markForm.exec(text) ?? [];
    if (mac === "" || Number(expireMs) <= Date.now()) return undefined;
    const expected = macOf(`${browserId}.${userId}.${expireMs}`);
    return timingSafeEqual(expected, Buffer.from(mac, "base64url"))
      ? { text, browserId, userId }
      : undefined;
  };
  const marksOf = ({ known = "" }: BrowserSession): Mark[] =>
    known
      .split("~", usersMax)
      .map(read)
      .filter((mark) => mark !== undefined);
  return {
    idOf: (browser, userId) => marksOf(browser).find((mark) => mark.userId === userId)?.browserId,
    remember(browser, userId) {
      const marks = marksOf(browser);
      const browserId =
        marks.find((mark) => mark.userId === userId)?.browserId ??
        randomBytes(16).toString("base64url");
      const text = `${browserId}.${userId}.${Date.now() + knownBrowserMs}`;
      const others = marks.filter((mark) => mark.userId !== userId).slice(0, usersMax - 1);
      const all = [
        `${text}.${macOf(text).toString("base64url")}`,
        ...others.map((each) => each.text),
      ];
      browser.remember(all.join("~"), knownBrowserMs);
    },
  };
}
