/**
 * Reads a request of a style that reports usage by itself, so that relaying it changes only the
 * model's name.
 */
import { asBuffer } from "../../core/bytes.ts";
import {
  type KnownMembers,
  type Members,
  pickMembers,
  readBoolean,
  readModel,
  readOutline,
  vendorBodies,
} from "../body-members.ts";
import type { VendorModel } from "../codec.ts";
import type { ReadRequestOptions, TextRequest } from "../dialect.ts";
import type { Outline } from "../../wire/json/outline.ts";
import type { Edit } from "../../wire/json/splice.ts";
import { type TurnForm, type TurnRules, turnEdits } from "./relayed-turns.ts";

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

/** Differences between the styles. */
interface StyleFacts extends Pick<TextRequest, "maxOutputTokens"> {
  readonly form: TurnForm;
  /** Content of turns that a vendor refuses. */
  readonly rulesFor: (target: VendorModel) => TurnRules;
}

/**
 * The facts that routing and billing need.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function sameStyleRequest(
  body: FoundBody,
  { alwaysStream }: ReadRequestOptions,
  { maxOutputTokens, form, rulesFor }: StyleFacts,
): TextRequest {
  const { bytes, members, model } = body;
  // Always read, so that a route that always streams refuses invalid values too.
  const asksForStream = readBoolean(bytes, members, "stream");
  const { forVendor, sizeFor } = vendorBodies(bytes, body.outline, (target) => [
    ...(target.model === model ? [] : modelEdits(body, target.model)),
    ...turnEdits(bytes, body.outline, { form, rules: rulesFor(target) }),
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
