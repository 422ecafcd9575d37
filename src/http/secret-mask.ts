/**
 * Masks the operator's credential in what a vendor says: some vendors and proxies repeat the headers of a request that they
 * refuse. The length stays, so that nothing else of a reply changes.
 */

/** Shorter credentials are words that replies contain anyway, and no secrets. */
const secretCharsMin = 8;

/** Masks the secrets of one client. */
export class SecretMask {
  readonly #secrets: readonly string[];

  /** @param headers those that carry the credential, such as `authorization: Bearer …` */
  constructor(headers: Readonly<Record<string, string>>) {
    this.#secrets = Object.values(headers)
      .map((value) => value.trim().split(/\s+/).at(-1) ?? "")
      .filter((secret) => secret.length >= secretCharsMin);
  }

  /** Whether there is anything to mask. */
  get hasSecrets(): boolean {
    return this.#secrets.length > 0;
  }

  /** The text with stars in place of secrets. */
  text(text: string): string {
    let masked = text;
    for (const secret of this.#secrets) {
      if (masked.includes(secret)) masked = masked.replaceAll(secret, "*".repeat(secret.length));
    }
    return masked;
  }

  /** The bytes with stars in place of secrets; the same buffer where there are none. */
  bytes(bytes: Buffer): Buffer {
    let masked = bytes;
    for (const secret of this.#secrets) {
      for (let at = masked.indexOf(secret); at >= 0; at = masked.indexOf(secret, at)) {
        if (masked === bytes) masked = Buffer.from(bytes);
        masked.fill("*", at, at + secret.length);
      }
    }
    return masked;
  }
}
