/** Codes that are worth money, as texts: how they are made, read and found. */
import { hash, randomBytes } from "node:crypto";

/** Crockford's base 32: no letter that looks like a digit. */
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** 20 characters of 5 bits: 100 random bits are beyond any guessing, also of a million open codes. */
const codeChars = 20;

const groupChars = 4;

/** Makes a code: `7Q2M-K0VX-9D3T-PWHA-64ZE`. */
export function newRedeemCode(): string {
  const chars = Array.from(randomBytes(codeChars), (byte) => alphabet.charAt(byte % 32));
  return (chars.join("").match(new RegExp(`.{${groupChars}}`, "g")) ?? []).join("-");
}

/** A code as somebody typed it, in its one form without dashes; `undefined`: it is none. */
export function readRedeemCode(text: string): string | undefined {
  // Spaces and dashes are for the eye; O, I and L are read for what they look like.
  const plain = text.slice(0, 100).toUpperCase().replaceAll(/[\s-]/g, "");
  const read = plain.replaceAll("O", "0").replaceAll(/[IL]/g, "1");
  return new RegExp(`^[${alphabet}]{${codeChars}}$`).test(read) ? read : undefined;
}

/** What a code is found by: of so many random bits a plain hash is enough. */
export function redeemCodeHash(plain: string): Buffer {
  return hash("sha256", plain, "buffer");
}

/** The end of a code, by which people tell it from others. */
export function redeemCodeHint(code: string): string {
  return code.slice(-groupChars);
}
