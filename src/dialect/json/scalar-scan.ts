/** Finds the end of numbers, words and white space in JSON, checking their grammar. Strings: string-scan.ts. */
import { failure, type JsonScanError } from "./string-scan.ts";

/** Behind a number or a word. */
export function scalarEnd(bytes: Uint8Array, at: number, first: number | undefined): number {
  if (first === 0x74) return wordEnd(bytes, at, "true");
  if (first === 0x66) return wordEnd(bytes, at, "false");
  if (first === 0x6e) return wordEnd(bytes, at, "null");
  return numberEnd(bytes, at);
}

function wordEnd(bytes: Uint8Array, at: number, word: string): number {
  for (let i = 0; i < word.length; i++) {
    if (bytes[at + i] !== word.charCodeAt(i)) throw noValue(bytes, at);
  }
  return at + word.length;
}

function numberEnd(bytes: Uint8Array, at: number): number {
  let i = bytes[at] === 0x2d ? at + 1 : at;
  const first = i;
  while (isDigit(bytes[i])) i++;
  if (i === first || (bytes[first] === 0x30 && i > first + 1)) throw noValue(bytes, at);
  if (bytes[i] === 0x2e) i = digitsEnd(bytes, i + 1);
  if (bytes[i] === 0x65 || bytes[i] === 0x45) {
    const sign = bytes[i + 1] === 0x2b || bytes[i + 1] === 0x2d ? 2 : 1;
    i = digitsEnd(bytes, i + sign);
  }
  return i;
}

function digitsEnd(bytes: Uint8Array, from: number): number {
  let i = from;
  while (isDigit(bytes[i])) i++;
  if (i === from) throw failure(bytes, from, "expected a digit");
  return i;
}

/** The first place from `from` on where no white space stands. */
export function spaceEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  let byte = bytes[at];
  while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at];
  return at;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function noValue(bytes: Uint8Array, at: number): JsonScanError {
  return failure(bytes, at, "expected a value");
}
