/** The key that the keys of stored secrets are made from, where the environment gives none. */
import { randomBytes, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Its length in bytes. */
const keyBytes = 32;

/** Its file in the data folder. */
const fileName = "master.key";

/**
 * The key of a data folder; makes one where there is none, readable by this user only. Two processes that
 * come at once get the same.
 *
 * @throws where the file cannot be read or made, or holds no key; the message says what to do
 */
export function keepMasterKey(dataDir: string): Buffer {
  const file = join(dataDir, fileName);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const text = readIfThere(file) ?? make(file);
    const key = decodeMasterKey(text.trim());
    if (key !== undefined) return key;
  } catch (cause) {
    throw new Error(`Cannot keep a master key in ${file}; ${advice}`, { cause });
  }
  throw new Error(`${file} holds no 32 bytes in base64; restore it from a backup, or ${advice}`);
}

const advice = "set UAS_MASTER_KEY (make one with `openssl rand -base64 32`)";

/** Reads a key from base64; `undefined` where the text is none. */
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

/** Written aside and linked: nobody reads half a key, and of two that are made at once the first stays. */
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
