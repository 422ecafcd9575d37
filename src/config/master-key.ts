/**
 * Keeps the master key in the data folder, if the environment gives none. Keys of stored secrets
 * derive from it.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Its length. */
const keyBytes = 32;

/** Its file in the data folder. */
const fileName = "master.key";

/**
 * Reads the master key of a data folder, or creates one, readable by this user only. Two processes
 * that start at the same time get the same key.
 *
 * @throws if the file cannot be read or created, or contains no key; the message says what to do
 */
export function keepMasterKey(dataDir: string): Buffer {
  const file = join(dataDir, fileName);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const text = readIfThere(file) ?? make(file);
    const key = decodeMasterKey(text.trim());
    if (key !== undefined) return key;
  } catch (cause) {
    throw new Error(`Cannot store a master key in ${file}; ${advice}`, { cause });
  }
  throw new Error(
    `${file} does not contain 32 bytes in base64; restore it from a backup, or ${advice}`,
  );
}

const advice = "set UAS_MASTER_KEY (create one with `openssl rand -base64 32`)";

/** Decodes a key from base64; `undefined` if the text is not 32 bytes in base64. */
export function decodeMasterKey(text: string): Buffer | undefined {
  if (!/^[A-Za-z0-9+/]{43}=?$/.test(text)) return undefined;
  const key = Buffer.from(text, "base64");
  return key.length === keyBytes ? key : undefined;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/**
 * Writes a temporary file and links it: no process reads half a key, and the first of two that
 * write at once wins.
 */
function make(file: string): string {
  const aside = `${file}.${randomUUID()}`;
  const text = `${randomBytes(keyBytes).toString("base64")}\n`;
  writeFileSync(aside, text, { flag: "wx", mode: 0o600, flush: true });
  try {
    linkSync(aside, file);
    return text;
  } catch (error) {
    if (isCode(error, "EEXIST")) return readFileSync(file, "utf8");
    throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
