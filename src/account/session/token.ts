/** The secrets that cookies and links hold. */
import { hash, randomBytes } from "node:crypto";

const form = /^[A-Za-z0-9_-]{43}$/;

/** Makes one: 32 random bytes as 43 characters. */
export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Whether a text has the form of one: what has not needs no look-up. */
export function isToken(text: string): boolean {
  return form.test(text);
}

/** What is stored of one: its SHA-256. A plain hash is enough for 256 random bits. */
export function digestToken(token: string): Buffer {
  return Buffer.from(hash("sha256", token, "hex"), "hex");
}
