/**
 * Brings the turns of a request into forms that every style can write, before they go to a vendor
 * of another style. Pure.
 */
import type { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type MediaPart,
  MediaType,
  type Part,
  type Role,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { append } from "../../core/append.ts";
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import { mediaType } from "../../core/media-type.ts";
import { portableParts } from "./opaque-text.ts";
import { pairToolCalls } from "../tools/tool-pairs.ts";

/** The destination of turns. */
export interface PortableTarget {
  /** The vendor's style: its own opaque parts stay as they are. */
  readonly dialect: Dialect;
  /** Called with the name of what cannot be carried. */
  readonly drop: (name: string) => void;
  readonly quirks: PortableQuirks;
}

/** The quirks that turns depend on, with the defaults of the vendor's style. */
export type PortableQuirks = Pick<VendorQuirks, "callIds" | "toolResults"> &
  Required<Pick<VendorQuirks, "blankText">>;

/**
 * Returns the turns for a vendor of another style: usual names of media types, unique IDs and
 * results for tool calls, and text for content that only the caller's style supports. Blank texts
 * are removed if the vendor refuses them. Content that cannot be omitted stays, so that the encoder
 * refuses it.
 */
export function portableTurns(turns: readonly Turn[], target: PortableTarget): readonly Turn[] {
  const written = replaced(turns, (turn) => portableTurn(turn, target)) ?? turns;
  const { callIds, toolResults } = target.quirks;
  return pairToolCalls(written, {
    areIdsUnique: callIds !== "any",
    areResultsPaired: toolResults !== "any",
  });
}

/** No turn if nothing of it is left; undefined if it stays as it is. */
function portableTurn(turn: Turn, target: PortableTarget): readonly Turn[] | undefined {
  const parts = portable(turn.parts, turn.role, target);
  if (parts === turn.parts) return undefined;
  return parts.length === 0 ? [] : [{ ...turn, parts }];
}

/** The same array if nothing changes. @param place see {@link portableParts} */
function portable(parts: Part[], place: Role | undefined, target: PortableTarget): Part[] {
  return replaced(parts, (part) => portablePart(part, place, target)) ?? parts;
}

/** The items with others in place of some; undefined if all stay, as in most requests. */
function replaced<Item>(
  items: readonly Item[],
  replace: (item: Item) => readonly Item[] | undefined,
): Item[] | undefined {
  let written: Item[] | undefined;
  for (const [index, item] of items.entries()) {
    const others = replace(item);
    if (others !== undefined) written ??= items.slice(0, index);
    if (written !== undefined) append(written, others ?? [item]);
  }
  return written;
}

/** Undefined if it stays as it is. */
function portablePart(
  part: Part,
  place: Role | undefined,
  target: PortableTarget,
): readonly Part[] | undefined {
  const { kind } = part;
  switch (kind.case) {
    case "media": {
      const mimeType = usualType(kind.value);
      if (mimeType === kind.value.mimeType) return undefined;
      return [{ ...part, kind: { case: "media", value: { ...kind.value, mimeType } } }];
    }
    case "opaque":
      if (kind.value.dialect === target.dialect) return undefined;
      return portableParts(kind.value, place, target.drop);
    case "toolResult": {
      const parts = portable(kind.value.parts, undefined, target);
      if (parts === kind.value.parts) return undefined;
      return [{ ...part, kind: { case: "toolResult", value: { ...kind.value, parts } } }];
    }
    case "text":
    case "refusal":
      if (target.quirks.blankText !== "refused" || !isBlank(kind.value.text)) return undefined;
      if (part.cacheHint !== undefined) target.drop("cache_hint");
      return [];
    case "toolCall":
    case "reasoning":
    case undefined:
    default:
      return undefined;
  }
}

/** Whether a text has nothing but white space, in any vendor's sense of it. */
function isBlank(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- separators that Python takes for white space
  return /^[\s\u001c-\u001f\u0085]*$/.test(text);
}

/** Samples without a header: only parameters describe their format. */
const rawAudio: ReadonlySet<string> = new Set(["audio/pcm", "audio/l16"]);

/** Types that say nothing of an image's format. */
const unknownImages: ReadonlySet<string> = new Set([
  "image/*",
  "*/*",
  "image",
  "application/octet-stream",
  "binary/octet-stream",
]);

function usualType({ type, mimeType }: MediaPart): string {
  const usual = mediaType(mimeType);
  if (rawAudio.has(usual)) return mimeType;
  return type === MediaType.IMAGE && unknownImages.has(usual) ? "" : usual;
}
