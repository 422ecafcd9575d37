/**
 * Carries a vendor's reasoning seal through a client of another style, inside that style's own
 * opaque field: `signature` or redacted `data` in messages, `encrypted_content` in responses
 * (R-TXT-3). The summary of a compacted conversation is carried in the same way. The client stores
 * the wrapped seal and sends it back. It is no secret, and a forged one only makes the vendor
 * refuse the request.
 */
import { asBuffer } from "../../core/bytes.ts";
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type ReasoningSeal,
  ReasoningSealSchema,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";

/** The prefix of every wrapped seal. No vendor's own seal contains a dot. */
const mark = "uas1.";

const dialects = Object.values(Dialect);

/** Further content of a wrapped seal, if the client's style has no other place for it. */
export interface SealContents {
  /** The reasoning's text. Default: none. */
  readonly text?: string;
  /** Its summaries, separately. Default: none. */
  readonly summaries?: readonly string[];
  /** ID of the item on the vendor's wire. Default: none. */
  readonly itemId?: string;
}

/** The content of a wrapped seal. */
export interface OpenedSeal {
  /** The vendor's seal; `undefined` if the reasoning had none, or the wrapped seal is damaged. */
  readonly seal: ReasoningSeal | undefined;
  readonly text: string;
  readonly summaries: string[];
  readonly itemId: string;
}

/** Short member names, since the wrapped seal is sent with every request. */
interface Wire {
  readonly d: number;
  readonly s?: string;
  readonly x?: string;
  readonly t?: string;
  readonly i?: string;
  readonly m?: readonly string[];
  readonly c?: string;
}

/**
 * Wraps a seal for a client of another style.
 *
 * @param seal undefined if the reasoning has none but the client's style requires one
 */
export function wrapSeal(seal: ReasoningSeal | undefined, contents: SealContents = {}): string {
  const { text = "", summaries = [], itemId = "" } = contents;
  const wire: Wire = {
    d: seal?.dialect ?? 0,
    ...(seal?.signature && { s: seal.signature }),
    ...(seal?.data && { x: seal.data }),
    ...(text && { t: text }),
    ...(itemId && { i: itemId }),
    ...(summaries.length > 0 && { m: summaries }),
  };
  return mark + Buffer.from(JSON.stringify(wire)).toString("base64url");
}

/**
 * Unwraps a seal; `undefined` if it is the style's own. A damaged one unwraps to nothing, so that
 * it never reaches a vendor.
 */
export function openSeal(opaque: string): OpenedSeal | undefined {
  if (!opaque.startsWith(mark)) return undefined;
  const wire = readWire(opaque.slice(mark.length));
  const signature = textOf(wire["s"]);
  const data = textOf(wire["x"]);
  const dialect = dialects.find((known) => known === wire["d"]) ?? Dialect.UNSPECIFIED;
  const sealed = signature !== "" || data !== "";
  return {
    seal: sealed ? create(ReasoningSealSchema, { dialect, signature, data }) : undefined,
    text: textOf(wire["t"]),
    summaries: Array.isArray(wire["m"]) ? wire["m"].map(textOf) : [],
    itemId: textOf(wire["i"]),
  };
}

/** Wraps the summary that takes the place of a compacted conversation. */
export function wrapSummary(summary: string): string {
  const wire: Wire = { d: 0, c: summary };
  return mark + Buffer.from(JSON.stringify(wire)).toString("base64url");
}

/** Unwraps a summary; `undefined` if a vendor made the item, empty if it is damaged. */
export function openSummary(opaque: string): string | undefined {
  return opaque.startsWith(mark) ? textOf(readWire(opaque.slice(mark.length))["c"]) : undefined;
}

function readWire(encoded: string): Readonly<Record<string, unknown>> {
  try {
    const wire: unknown = JSON.parse(Buffer.from(encoded, "base64url").toString());
    return typeof wire === "object" && wire !== null ? (wire as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Whether a body may contain wrapped seals. Its conversation then began at a vendor of another
 * style, and a vendor of the caller's style would refuse them, so the body cannot be relayed
 * unchanged.
 */
export function carriesSeals(body: Uint8Array): boolean {
  return asBuffer(body).includes(`"${mark}`);
}
