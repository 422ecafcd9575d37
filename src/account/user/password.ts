/** Checks and hashes passwords. */
import { argon2, type Argon2Parameters, randomBytes, timingSafeEqual } from "node:crypto";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

const charsMin = 10;
const charsMax = 256;

/** Argon2id with OWASP's parameters: 19 MiB, 2 passes, parallelism 1; 33 ms on the test machine. */
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const;

const saltBytes = 16;
const tagBytes = 32;

/** Checks a new password. @throws GatewayError INVALID_REQUEST */
export function checkPassword(password: string, email: string): void {
  const chars = Array.from(password).length;
  const wrong = (message: string): GatewayError =>
    new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "password" });
  if (chars < charsMin || chars > charsMax) {
    throw wrong(`password has ${chars} characters: use ${charsMin} to ${charsMax}`);
  }
  if (new Set(password).size < 5 || password.toLowerCase() === email) {
    throw wrong(
      "password is too easy to guess: use several words, or let a password manager generate one",
    );
  }
}

/** Hashes a password: salt, cost and hash in one text, in the format of the argon2 tools. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  const hash = await derive(password, salt, cost);
  const { memory, passes, parallelism } = cost;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(hash)}`;
}

const form = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=(\d{1,2})\$([\w+/]+)\$([\w+/]+)$/;

/**
 * Whether a password matches. Takes the same time if no password is stored.
 *
 * @param stored from {@link hashPassword}; null if the user has no password
 */
export async function isPassword(password: string, stored: string | null): Promise<boolean> {
  const [, memory, passes, parallelism, salt = "", hash = ""] = form.exec(stored ?? "") ?? [];
  // A password beyond the limit never matches. Hashing it would let callers choose the amount of
  // work.
  const presented = password.length > 2 * charsMax ? "" : password;
  if (hash === "") {
    await derive(presented, Buffer.alloc(saltBytes), cost);
    return false;
  }
  const stretched = {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  };
  const found = await derive(presented, Buffer.from(salt, "base64"), stretched);
  const expected = Buffer.from(hash, "base64");
  return found.length === expected.length && timingSafeEqual(found, expected);
}

function derive(
  password: string,
  nonce: Buffer,
  stretch: Pick<Argon2Parameters, "memory" | "passes" | "parallelism">,
): Promise<Buffer> {
  // Unicode normalization: keyboards encode the same letter in several ways.
  const message = password.normalize("NFC");
  const parameters = { ...stretch, message, nonce, tagLength: tagBytes };
  return new Promise((resolve, reject) => {
    argon2("argon2id", parameters, (error, hash) => (error ? reject(error) : resolve(hash)));
  });
}

function base64(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}
