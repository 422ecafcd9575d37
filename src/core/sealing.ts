/** Encrypts stored texts of an account, so that the database alone does not reveal them. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Encrypts and decrypts texts of one purpose. */
export interface Sealing {
  /** @param context identifies the owner of the text; decryption needs the same context */
  seal(accountId: string, context: Uint8Array, text: string): Buffer;
  /**
   * Decrypts. Undefined if the text was sealed with another master key, account or context, or is
   * damaged.
   */
  open(accountId: string, context: Uint8Array, sealed: Buffer): string | undefined;
}

/** Version of the format. */
const version = 1;

const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;

/**
 * AES-256-GCM with one key per account: HKDF-SHA256 of the master key, the purpose and the account
 * id. Nonces are random; at 96 bits, 4 × 10⁹ of them per account are safe.
 *
 * @param purpose separates keys of different uses, for example `reasoning`
 */
export function createSealing(masterKey: Uint8Array, purpose: string): Sealing {
  const keyOf = (accountId: string): Buffer =>
    Buffer.from(hkdfSync("sha256", masterKey, "", `uas ${purpose} ${accountId}`, keyBytes));
  return {
    seal(accountId, context, text) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", keyOf(accountId), nonce).setAAD(context);
      const sealed = [cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
      return Buffer.concat([Buffer.of(version), nonce, ...sealed]);
    },
    open(accountId, context, sealed) {
      if (sealed[0] !== version || sealed.length < 1 + nonceBytes + tagBytes) return undefined;
      const nonce = sealed.subarray(1, 1 + nonceBytes);
      const decipher = createDecipheriv("aes-256-gcm", keyOf(accountId), nonce, {
        authTagLength: tagBytes,
      });
      decipher.setAAD(context).setAuthTag(sealed.subarray(-tagBytes));
      try {
        const text = decipher.update(sealed.subarray(1 + nonceBytes, -tagBytes));
        return Buffer.concat([text, decipher.final()]).toString();
      } catch {
        return undefined;
      }
    },
  };
}
