/** Authenticators: time-based one-time passwords (RFC 6238) of 6 digits, by HMAC-SHA1, each good for 30 seconds. */
import { createHmac, randomBytes } from "node:crypto";

const stepMs = 30_000;
const digits = 6;

/** How many steps a clock may be wrong by, either way. */
const driftSteps = 1;

/** 160 bits, as RFC 4226 recommends. */
const secretBytes = 20;

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Makes the secret of an authenticator, in base32. */
export function newTotpSecret(): string {
  return base32(randomBytes(secretBytes));
}

/** The secret as authenticators read it from a QR code. */
export function totpUri(secret: string, label: string): string {
  const issuer = "UAS Gateway";
  return `otpauth://totp/${encodeURIComponent(`${issuer}:${label}`)}?secret=${secret}&issuer=${encodeURIComponent(issuer)}`;
}

/** The code of a step: of 30 seconds, counted since 1970. */
export function totpCode(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac("sha1", decodeBase32(secret)).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0xf;
  const value = mac.readUInt32BE(offset) & 0x7fffffff;
  return String(value % 10 ** digits).padStart(digits, "0");
}

/** The step whose code this is, of those near to a time; `undefined`: it is of none of them. */
export function totpStep(secret: string, code: string, nowMs: number): number | undefined {
  const now = Math.floor(nowMs / stepMs);
  for (let step = now - driftSteps; step <= now + driftSteps; step += 1) {
    if (totpCode(secret, step) === code) return step;
  }
  return undefined;
}

function base32(bytes: Buffer): string {
  let bits = "";
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  return (bits.match(/.{5}/g) ?? []).map((five) => alphabet[Number.parseInt(five, 2)]).join("");
}

function decodeBase32(text: string): Buffer {
  let bits = "";
  for (const char of text) bits += alphabet.indexOf(char).toString(2).padStart(5, "0");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
