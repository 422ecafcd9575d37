/** Generates, recognises, hashes and masks API keys. */
import { hash, randomBytes } from "node:crypto";

/** The prefix of every key, so that scanners for leaked secrets recognise it. */
const prefix = "uas_";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Number of random characters. log2(62 ** 32) is 190 bits, which cannot be guessed. */
const randomChars = 32;

const secretChars = prefix.length + randomChars;

const form = /^uas_[A-Za-z0-9]{32}$/;

/** The prefix of service credentials. */
const servicePrefix = "uas_svc_";

const serviceForm = /^uas_svc_[A-Za-z0-9]{32}$/;

/** Generates a key (R-KEY-1): `uas_` and 32 letters or digits from a cryptographic generator. */
export function newSecret(): string {
  return secretFrom(randomBytes);
}

/** Generates the secret of a service credential: `uas_svc_` and 32 letters or digits. */
export function newServiceSecret(): string {
  return servicePrefix + newSecret().slice(prefix.length);
}

/** Whether a text looks like the secret of a service credential. */
export function isServiceSecret(text: string): boolean {
  return serviceForm.test(text);
}

/** Generates a key from a given source of random bytes. */
export function secretFrom(nextBytes: (count: number) => Uint8Array): string {
  // Bytes beyond the last multiple of 62 are discarded: `% 62` would favour the first letters.
  const fair = 256 - (256 % alphabet.length);
  let text = prefix;
  while (text.length < secretChars) {
    for (const byte of nextBytes(secretChars - text.length)) {
      if (byte < fair) text += alphabet.charAt(byte % alphabet.length);
    }
  }
  return text;
}

/** Whether a text looks like a key; other texts need no look-up. */
export function isSecret(text: string): boolean {
  return text.length === secretChars && form.test(text);
}

/**
 * The SHA-256 by which a key is found, as 32 characters of one byte each (latin1). A plain hash
 * suffices for 190 random bits, and a look-up by hash leaks no timing. As a map key this form is
 * the cheapest: 0.27 µs to make, against 0.34 µs in hex.
 */
export function digestSecret(text: string): string {
  return hash("sha256", text, "latin1");
}

/** The digest in the form that the database stores. */
export function digestBytes(digest: string): Buffer {
  return Buffer.from(digest, "latin1");
}

/** The form shown in lists: `uas_abcd…wxyz`. */
export function maskSecret(text: string): string {
  return `${text.slice(0, 8)}…${text.slice(-4)}`;
}
