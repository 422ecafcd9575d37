import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  digestBytes,
  digestSecret,
  isSecret,
  maskSecret,
  newSecret,
  secretFrom,
} from "../../../src/key/secret.ts";

test("R-KEY-1: a key is uas_ and 32 letters or digits, never the same twice", () => {
  const secrets = Array.from({ length: 1_000 }, newSecret);
  for (const secret of secrets) expect(secret).toMatch(/^uas_[A-Za-z0-9]{32}$/);
  expect(new Set(secrets).size).toBe(1_000);
});

test("R-KEY-1: every letter comes from equally many bytes; bytes beyond are thrown away", () => {
  const sources = new Map<string, number>();
  for (let byte = 0; byte < 256; byte++) {
    let isFirst = true;
    const secret = secretFrom((count) => {
      const bytes = new Uint8Array(count);
      if (isFirst) bytes[0] = byte;
      isFirst = false;
      return bytes;
    });
    // Were the byte thrown away, the key would be made of the zeros only.
    const letter = secret.charAt("uas_".length);
    sources.set(letter, (sources.get(letter) ?? 0) + 1);
  }
  expect(sources.size).toBe(62);
  const zeros = sources.get("A") ?? 0;
  sources.delete("A");
  expect(new Set(sources.values())).toEqual(new Set([4]));
  expect(zeros).toBe(4 + (256 % 62));
});

test("a source that yields mostly unfair bytes still gives a whole key", () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat(255)), (stream) => {
      const secret = secretFrom((count) => Uint8Array.from(stream.take(count)));
      expect(isSecret(secret)).toBe(true);
    }),
  );
});

test("only texts of the form are keys", () => {
  const secret = newSecret();
  expect(isSecret(secret)).toBe(true);
  for (const text of ["", "uas_", secret.slice(1), `${secret}a`, `${secret.slice(0, -1)}-`]) {
    expect(isSecret(text)).toBe(false);
  }
  expect(isSecret(`${secret.slice(0, -1)}\n`)).toBe(false);
  expect(isSecret(`UAS_${secret.slice(4)}`)).toBe(false);
});

test("a key is found by its SHA-256, and shown by its ends only", () => {
  const secret = `uas_abcd${"x".repeat(24)}wxyz`;
  expect(digestBytes(digestSecret(secret)).toString("hex")).toBe(
    "eb56c1e1a198128b4f9d2508ba1e4208f7416274e29c3cd4a6f3762f88ba9407",
  );
  expect(maskSecret(secret)).toBe("uas_abcd…wxyz");
});
