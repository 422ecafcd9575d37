/** State of one request while it is written for a vendor: the style it came in, and the members that cannot be carried. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import { isRecord, setMember } from "../json/value.ts";

/** A request body while it is written. */
export class EncodeContext {
  /** Whether the request came in this style: then it is written as it was, where that makes a difference. */
  readonly isOwn: boolean;
  /** That style; `undefined`: a typed caller. */
  readonly source: Dialect | undefined;
  readonly #dropped = new Set<string>();

  constructor(source: Dialect | undefined) {
    this.source = source;
    this.isOwn = source === Dialect.CHAT_COMPLETIONS;
  }

  /** What could not be carried. Each name once. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Notes that something cannot be carried. */
  drop(name: string): void {
    this.#dropped.add(name);
  }

  /** Writes extras of this style back into the object that they came from: `function.x` into its member
   * `function`. Those of other styles are dropped. */
  writeExtras(target: Record<string, unknown>, extras: readonly Extra[]): void {
    for (const { name, json } of extras) {
      if (this.isOwn) writeAt(target, name, parseJson(json, name));
      else this.drop(name);
    }
  }
}

/** JSON from the contract. @throws GatewayError INVALID_REQUEST where it is none; `param` names the field */
export function parseJson(json: string, param: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw invalid(param, `"${param}" is not valid JSON`);
  }
}

/** Never over what is there already: a client can give a member any name, also one with a dot. */
function writeAt(target: Record<string, unknown>, name: string, value: unknown): void {
  const dot = name.indexOf(".");
  const inner = dot < 0 ? undefined : target[name.slice(0, dot)];
  if (isRecord(inner)) return writeAt(inner, name.slice(dot + 1), value);
  if (Object.hasOwn(target, name)) return;
  setMember(target, name, value);
}
