/** Request bodies of which the gateway needs to know the model and little else. */
import { asBuffer } from "../bytes.ts";
import {
  applyEdits,
  invalid,
  knownMembers,
  pickMembers,
  readModel,
  readOutline,
  textOf,
} from "./body-members.ts";

/** Such a body. */
export interface ModelBody {
  /** The model as the customer named it. */
  readonly model: string;
  readonly bytes: Buffer;
  /** The body for a vendor, in pieces to be sent one after the other: another model name, else the same
   * bytes. */
  forVendor(model: string): readonly Buffer[];
}

/**
 * The model that a refused body names, as far as it can be read: for its record.
 *
 * @param keys the members that name it, the one that counts first
 * @returns empty where it names none
 */
export function namedModel(body: Uint8Array, keys: readonly string[]): string {
  try {
    const bytes = asBuffer(body);
    const { members } = readOutline(bytes);
    return readModel(bytes, new Map(members.map((member) => [member.key, member])), ...keys);
  } catch {
    return "";
  }
}

/**
 * Reads one.
 *
 * @param required the members that must be there, beside `model`
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function readModelBody(body: Uint8Array, required: readonly string[]): ModelBody {
  const bytes = asBuffer(body);
  const members = pickMembers(readOutline(bytes), knownMembers(["model", ...required]));
  const model = readModel(bytes, members, "model");
  for (const name of required) {
    if (textOf(bytes, members, name) === undefined) throw invalid(`"${name}" is missing`, name);
  }
  return {
    model,
    bytes,
    forVendor(vendorModel) {
      const member = members.get("model");
      if (member === undefined || vendorModel === model) return [bytes];
      const { valueStart: start, valueEnd: end } = member;
      return applyEdits(bytes, [{ start, end, text: JSON.stringify(vendorModel) }]);
    },
  };
}
