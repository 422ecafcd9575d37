/** Reads a request of a style that reports usage by itself, so that relaying it changes only the model's name. */
import { asBuffer } from "../core/bytes.ts";
import {
  type KnownMembers,
  type Members,
  pickMembers,
  readBoolean,
  readModel,
  readOutline,
  vendorBodies,
} from "./body-members.ts";
import type { ReadRequestOptions, TextRequest } from "./dialect.ts";
import type { Outline } from "./json/outline.ts";
import type { Edit } from "./json/splice.ts";

/** A request body whose members have been found. */
export interface FoundBody {
  /** The model as the customer named it. */
  readonly model: string;
  readonly bytes: Buffer;
  readonly members: Members;
  readonly outline: Outline;
}

/**
 * Finds the members that a style reads, and reads the model's name.
 *
 * @throws GatewayError INVALID_REQUEST, see {@link pickMembers}
 */
export function findMembers(body: Uint8Array, known: KnownMembers): FoundBody {
  const bytes = asBuffer(body);
  const outline = readOutline(bytes);
  const members = pickMembers(outline, known);
  return { bytes, outline, members, model: readModel(bytes, members, "model") };
}

/**
 * The facts that routing and billing need.
 *
 * @param maxOutputTokens see {@link TextRequest.maxOutputTokens}
 * @throws GatewayError INVALID_REQUEST
 */
export function sameStyleRequest(
  body: FoundBody,
  { alwaysStream }: ReadRequestOptions,
  maxOutputTokens: number | undefined,
): TextRequest {
  const { bytes, members, model } = body;
  // Always read, so that a route that always streams refuses invalid values too.
  const asksForStream = readBoolean(bytes, members, "stream");
  const { forVendor, sizeFor } = vendorBodies(bytes, body.outline, ({ model: vendorModel }) => [
    ...(vendorModel === model ? [] : modelEdits(body, vendorModel)),
    ...(alwaysStream && !asksForStream ? streamEdits(body) : []),
  ]);
  return {
    model,
    stream: alwaysStream || asksForStream,
    wantsUsage: true,
    maxOutputTokens,
    choices: 1,
    bytes: bytes.length,
    outline: body.outline,
    forVendor,
    sizeFor,
  };
}

function modelEdits({ members }: FoundBody, vendorModel: string): Edit[] {
  const member = members.get("model");
  if (member === undefined) return [];
  return [{ start: member.valueStart, end: member.valueEnd, text: JSON.stringify(vendorModel) }];
}

function streamEdits({ members, outline }: FoundBody): Edit[] {
  const flag = members.get("stream");
  return flag === undefined
    ? [{ start: outline.end, end: outline.end, text: ',"stream":true' }]
    : [{ start: flag.valueStart, end: flag.valueEnd, text: "true" }];
}
