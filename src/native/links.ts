/**
 * Links that vendors' clients follow without a key (Replicate's `urls.stream`). They are sealed:
 * opaque, unforgeable, and valid for a limited time. Nothing is stored for them.
 */
import { nativeLinkMs } from "../core/limits.ts";
import type { KeyRef } from "../core/caller.ts";
import type { Clock } from "../core/clock.ts";
import { createSealing } from "../core/sealing.ts";
import { isUuid } from "../core/uuid.ts";
import type { NativeMount } from "./mount.ts";

/** The target of a link. */
export interface LinkTarget {
  /** The name of the vendor's address. */
  readonly base: string;
  /** Path and query there. */
  readonly target: string;
  /** The key that the link was made with: the link ends with it. */
  readonly owner: KeyRef;
}

/** Creates and opens links. */
export interface Links {
  /** Replaces the vendor's addresses in a body by links. */
  replace(
    body: Buffer,
    to: { readonly mount: NativeMount; readonly owner: KeyRef; readonly publicUrl: string },
  ): Buffer;
  /** Opens a link; undefined if it is invalid or has expired. */
  open(mount: NativeMount, token: string): LinkTarget | undefined;
}

/** The path of links below a prefix. */
export const linkPath = /^\/_s\/([\w-]{60,4000})$/;

/**
 * Creates the links. Every process opens links of the others, since all use the same clock and
 * master key.
 *
 * @param masterKey 32 bytes
 */
export function createLinks(masterKey: Uint8Array, clock: Clock): Links {
  const sealing = createSealing(masterKey, "native link");
  const contextOf = ({ prefix }: NativeMount): Buffer => Buffer.from(prefix);
  const mint = (mount: NativeMount, { accountId, keyId }: KeyRef, url: string): string => {
    const text = JSON.stringify([clock.now() + nativeLinkMs, url, keyId]);
    const sealed = sealing.seal(accountId, contextOf(mount), text);
    return `${accountId.replaceAll("-", "")}${sealed.toString("base64url")}`;
  };
  return {
    replace(body, { mount, owner, publicUrl }) {
      const members = mount.api.linkMembers ?? [];
      if (members.length === 0) return body;
      const pattern = new RegExp(`("(?:${members.join("|")})"\\s*:\\s*")([^"\\\\]+)(?=")`, "g");
      const text = body.toString("latin1");
      const linked = text.replaceAll(pattern, (all, start: string, url: string) =>
        baseOf(mount, url) === undefined
          ? all
          : `${start}${publicUrl}${mount.prefix}/_s/${mint(mount, owner, url)}`,
      );
      return linked === text ? body : Buffer.from(linked, "latin1");
    },
    open(mount, token) {
      const hex = token.slice(0, 32);
      const accountId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
      if (!isUuid(accountId)) return undefined;
      const sealed = Buffer.from(token.slice(32), "base64url");
      const text = sealing.open(accountId, contextOf(mount), sealed);
      if (text === undefined) return undefined;
      const [untilMs, url, keyId] = JSON.parse(text) as [number, string, string];
      const base = baseOf(mount, url);
      if (untilMs < clock.now() || base === undefined) return undefined;
      return { base: base.name, target: url.slice(base.url.length), owner: { accountId, keyId } };
    },
  };
}

/** The vendor's base address of a URL. */
function baseOf({ transport }: NativeMount, url: string) {
  return transport.bases.find((base) => url.startsWith(`${base.url}/`));
}
