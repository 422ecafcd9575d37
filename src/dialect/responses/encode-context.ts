/** What writing a request keeps track of. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type CacheHint, type Extra, Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import type { JsonRecord } from "../json/value.ts";
import { itemIdFor, type ItemType } from "./wire.ts";
import { toolNameFor } from "../tool-names.ts";

/** As in chat completions, but that dots are allowed. */
const shortName = toolNameFor({ charsMax: 64, dots: true });

/** One request while it is written. */
export class EncodeContext {
  /** The style that the request came in; `undefined`: a typed caller. */
  readonly source: Dialect | undefined;
  /** Whether that is this style: its extras go back as they came. */
  readonly isOwn: boolean;
  readonly #dropped = new Set<string>();

  constructor(source: Dialect | undefined) {
    this.source = source;
    this.isOwn = source === Dialect.RESPONSES;
  }

  /** What could not be carried, each once. */
  get dropped(): string[] {
    return [...this.#dropped];
  }

  /** Notes what cannot be carried. A function, so that it can be handed on. */
  readonly drop = (name: string): void => {
    this.#dropped.add(name);
  };

  /** The object with the extras of its own style. */
  withExtras(object: JsonRecord, extras: readonly Extra[]): JsonRecord {
    if (extras.length === 0) return object;
    if (!this.isOwn) {
      for (const { name } of extras) this.drop(name);
      return object;
    }
    // Not by assignment: a member may be called `__proto__`.
    const added = extras.map(({ name, json }): [string, unknown] => [name, JSON.parse(json)]);
    return Object.fromEntries([...Object.entries(object), ...added]);
  }

  /** Whether hints of where a cached prefix may end mean here what they mean to the caller. */
  get takesBreakpoints(): boolean {
    return this.isOwn || this.source === Dialect.CHAT_COMPLETIONS;
  }

  /** The member that ends a cached prefix. What the model said can have none. */
  breakpoint(hint: CacheHint | undefined, role: Role): JsonRecord {
    if (hint === undefined) return {};
    const isCarried = this.isOwn || (this.takesBreakpoints && role !== Role.ASSISTANT);
    if (!isCarried) {
      this.drop("cache_hint");
      return {};
    }
    const { ttl } = hint;
    return { prompt_cache_breakpoint: { mode: "explicit", ...(ttl && { ttl }) } };
  }

  /** The tool's name, shortened where the vendor takes none so long. In a namespace it stands as it is. */
  toolName(name: string): string {
    return this.isOwn ? name : shortName({ name, namespace: "" });
  }

  /** The members that tell an item's id and that it is complete; none where it has no id to be told. */
  identity(type: ItemType, id: string): JsonRecord {
    const sentId = this.isOwn ? id : itemIdFor(type, id);
    return sentId === "" ? {} : { id: sentId };
  }
}

/**
 * Parses JSON that the contract carries as text.
 *
 * @param param its place in the contract
 * @throws GatewayError INVALID_REQUEST where it is none
 */
export function parsedJson(text: string, param: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(param, `"${param}" is not valid JSON`);
  }
}
