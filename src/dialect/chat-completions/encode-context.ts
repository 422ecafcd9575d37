/**
 * State of one request while it is written for a vendor: the style it came in, and the members that
 * cannot be carried.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import { invalid } from "../../core/validation.ts";
import type { PortableQuirks } from "../turns/portable-turns.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { isJson, isRecord, setMember } from "../../wire/json/value.ts";

/** A request body while it is written. */
export class EncodeContext {
  /**
   * Whether the request came in this style: then it is written as it was, if that makes a
   * difference.
   */
  readonly isOwn: boolean;
  /** The style of the request; undefined for a typed caller. */
  readonly source: Dialect | undefined;
  readonly quirks: VendorQuirks & PortableQuirks;
  readonly #dropped = new Set<string>();

  constructor(source: Dialect | undefined, quirks: VendorQuirks = {}) {
    this.source = source;
    this.quirks = { blankText: "accepted", ...quirks };
    this.isOwn = source === Dialect.CHAT_COMPLETIONS;
  }

  /** Names of members that could not be carried, each once. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Notes that something cannot be carried. */
  drop(name: string): void {
    this.#dropped.add(name);
  }

  /**
   * JSON that the contract carries as text, as its author wrote it.
   *
   * @param param its place in the contract
   * @throws GatewayError INVALID_REQUEST if a typed caller sent something else
   */
  json(text: string, param: string): JsonText {
    // In every style, what became JSON of the contract was a part of the client's JSON.
    if (this.source === undefined && !isJson(text)) {
      throw invalid(param, `"${param}" is not valid JSON`);
    }
    return new JsonText(text);
  }

  /**
   * Writes extras of this style back into the object that they came from: `function.x` into its
   * member `function`. Those of other styles are dropped.
   */
  writeExtras(target: Record<string, unknown>, extras: readonly Extra[]): void {
    for (const { name, json } of extras) {
      if (this.isOwn) writeAt(target, name, this.json(json, name));
      else this.drop(name);
    }
  }
}

/** Never over what is there already: a client can give a member any name, also one with a dot. */
function writeAt(target: Record<string, unknown>, name: string, value: unknown): void {
  const dot = name.indexOf(".");
  const inner = dot < 0 ? undefined : target[name.slice(0, dot)];
  if (isRecord(inner) && !(inner instanceof JsonText))
    return writeAt(inner, name.slice(dot + 1), value);
  if (Object.hasOwn(target, name)) return;
  setMember(target, name, value);
}
