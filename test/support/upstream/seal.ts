/** Opaque reasoning that only the simulation that issued it accepts, and only byte for byte. */
import { createHmac } from "node:crypto";

/** Content of a vendor's seal: the issuer, the item, and the reasoning. */
export interface Sealed {
  /** The style, so that one vendor's seals mean nothing to another. */
  readonly issuer: string;
  /** ID of the item; empty if the style has none. */
  readonly id: string;
  readonly text: string;
}

/** Signs without carrying: the signature of a thinking block. */
export function sign({ issuer, id, text }: Sealed): string {
  return createHmac("sha512", `simulated-${issuer}`).update(`${id}\0${text}`).digest("base64");
}

/** Carries what was thought: encrypted content, redacted data. */
export function seal(sealed: Sealed): string {
  const content = Buffer.from(JSON.stringify(sealed)).toString("base64url");
  return `gAAAAAB${content}.${sign(sealed).slice(0, 43)}`;
}

/** Returns the sealed content; undefined if a byte differs, or if it is from another issuer. */
export function unseal(opaque: string, issuer: string): Sealed | undefined {
  const content = /^gAAAAAB([\w-]+)\./.exec(opaque)?.[1];
  if (content === undefined) return undefined;
  try {
    const sealed = JSON.parse(Buffer.from(content, "base64url").toString()) as Sealed;
    return sealed.issuer === issuer && seal(sealed) === opaque ? sealed : undefined;
  } catch {
    return undefined;
  }
}
