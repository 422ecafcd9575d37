/**
 * Addresses that vendors' clients follow without a key (Replicate's `urls.stream`): sealed, so that they tell
 * nothing, cannot be made up, and end with their time. Nothing is stored for them.
 */
import { nativeLinkMs } from "../config/limits.ts";
import { createSealing } from "../core/sealing.ts";
import { isUuid } from "../core/uuid.ts";
import type { NativeVendor } from "./context.ts";

/** Where a link leads. */
export interface LinkTarget {
  /** The name of the vendor's address. */
  readonly base: string;
  /** Path and query there. */
  readonly target: string;
  readonly accountId: string;
}

/** Makes and reads them. */
export interface Links {
  /** Puts links in place of the vendor's addresses. */
  replace(
    body: Buffer,
    to: { readonly at: NativeVendor; readonly accountId: string; readonly publicUrl: string },
  ): Buffer;
  /** Where a link leads; `undefined`: nowhere, or no more. */
  open(at: NativeVendor, token: string): LinkTarget | undefined;
}

/** Below each prefix that has some. */
export const linkPath = /^\/_s\/([\w-]{60,4000})$/;

/** Makes them. @param masterKey 32 bytes */
export function createLinks(masterKey: Uint8Array): Links {
  const sealing = createSealing(masterKey, "native link");
  const contextOf = ({ prefix }: NativeVendor): Buffer => Buffer.from(prefix);
  const mint = (at: NativeVendor, accountId: string, url: string): string => {
    const text = JSON.stringify([Date.now() + nativeLinkMs, url]);
    const sealed = sealing.seal(accountId, contextOf(at), text);
    return `${accountId.replaceAll("-", "")}${sealed.toString("base64url")}`;
  };
  return {
    replace(body, { at, accountId, publicUrl }) {
      const members = at.api.linkMembers ?? [];
      if (members.length === 0) return body;
      const pattern = new RegExp(`("(?:${members.join("|")})"\\s*:\\s*")([^"\\\\]+)(?=")`, "g");
      const text = body.toString("latin1");
      const linked = text.replaceAll(pattern, (all, start: string, url: string) =>
        baseOf(at, url) === undefined
          ? all
          : `${start}${publicUrl}${at.prefix}/_s/${mint(at, accountId, url)}`,
      );
      return linked === text ? body : Buffer.from(linked, "latin1");
    },
    open(at, token) {
      const hex = token.slice(0, 32);
      const accountId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
      if (!isUuid(accountId)) return undefined;
      const sealed = Buffer.from(token.slice(32), "base64url");
      const text = sealing.open(accountId, contextOf(at), sealed);
      if (text === undefined) return undefined;
      const [untilMs, url] = JSON.parse(text) as [number, string];
      const base = baseOf(at, url);
      if (untilMs < Date.now() || base === undefined) return undefined;
      return { base: base.name, target: url.slice(base.url.length), accountId };
    },
  };
}

/** The vendor's address that a URL begins with. */
function baseOf({ transport }: NativeVendor, url: string) {
  return transport.bases.find((base) => url.startsWith(`${base.url}/`));
}
