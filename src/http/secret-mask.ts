/**
 * Masks the operator's credential in vendors' replies: some vendors and proxies repeat the headers
 * of a request that they refuse. The length stays, so that the rest of the reply does not change.
 */
import { emptyBuffer, joinBuffers } from "../core/bytes.ts";

/** Shorter credentials are words that replies contain anyway, and no secrets. */
const secretCharsMin = 8;

/** Masks the secrets of one client. */
export class SecretMask {
  /** The secrets in each spelling, without line ends. */
  readonly spellings: readonly Spelling[];

  /** @param headers those that carry the credential, such as `authorization: Bearer …` */
  constructor(headers: Readonly<Record<string, string>>) {
    const texts = Object.values(headers)
      .map((value) => value.trim().split(/\s+/).at(-1) ?? "")
      .filter((secret) => secret.length >= secretCharsMin)
      .flatMap(spellingsOf);
    this.spellings = [...new Set(texts)].map((text) => ({ text, bytes: Buffer.from(text) }));
  }

  /** The text with stars in place of secrets. */
  text(text: string): string {
    let masked = text;
    for (const { text: secret } of this.spellings) {
      if (masked.includes(secret)) masked = masked.replaceAll(secret, "*".repeat(secret.length));
    }
    return masked;
  }

  /** The bytes with stars in place of secrets; the same buffer if it contains none. */
  bytes(bytes: Buffer): Buffer {
    let masked = bytes;
    for (const { bytes: secret } of this.spellings) {
      for (let at = masked.indexOf(secret); at >= 0; at = masked.indexOf(secret, at)) {
        if (masked === bytes) masked = Buffer.from(bytes);
        masked.fill("*", at, at + secret.length);
      }
    }
    return masked;
  }
}

/** A secret in a spelling that a reply may contain. */
interface Spelling {
  readonly text: string;
  readonly bytes: Buffer;
}

/** Masks a body that arrives in pieces: a piece may end inside a secret. */
export class MaskedBody {
  readonly #mask: SecretMask;
  /** The last received bytes, which may be the beginning of a secret. */
  #held: Buffer = emptyBuffer;

  constructor(mask: SecretMask) {
    this.#mask = mask;
  }

  /** Whether bytes wait for the next piece. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /**
   * The bytes so far that can be shown.
   *
   * @param isEnd whether these bytes are the last ones
   */
  push(pieces: readonly Buffer[], isEnd: boolean): Buffer {
    const came = joinBuffers(this.isHolding ? [this.#held, ...pieces] : pieces);
    const masked = this.#mask.bytes(came);
    const heldBytes = isEnd ? 0 : this.#begunBytes(masked);
    this.#held = heldBytes === 0 ? emptyBuffer : masked.subarray(masked.length - heldBytes);
    return heldBytes === 0 ? masked : masked.subarray(0, masked.length - heldBytes);
  }

  /** Number of bytes at the end that may begin a secret. */
  #begunBytes(bytes: Buffer): number {
    // Most pieces of a stream end with a line, and no secret has a line end.
    if (bytes.length === 0 || bytes[bytes.length - 1] === lineFeed) return 0;
    let most = 0;
    for (const { bytes: secret } of this.#mask.spellings) {
      const [first = 0] = secret;
      let at = bytes.indexOf(first, Math.max(0, bytes.length - secret.length + 1));
      while (at >= 0) {
        const begun = bytes.length - at;
        if (secret.compare(bytes, at, bytes.length, 0, begun) === 0) {
          most = Math.max(most, begun);
          break;
        }
        at = bytes.indexOf(first, at + 1);
      }
    }
    return most;
  }
}

const lineFeed = 0x0a;

/**
 * A secret as encoders of JSON and of URLs spell it. Those of PHP, .NET and Java escape more than
 * JSON requires.
 */
function spellingsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const escaped = (characters: RegExp): string =>
    json.replaceAll(
      characters,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  const wide = escaped(/[+<>&'`]/g);
  const narrow = escaped(/[=<>&']/g);
  return [
    secret,
    json,
    json.replaceAll("/", "\\/"),
    wide.replaceAll(/\\u[0-9a-f]{4}/g, (escape) => `\\u${escape.slice(2).toUpperCase()}`),
    wide,
    narrow,
    encodeURIComponent(secret.toWellFormed()),
  ];
}
