/** State of one request while it is written for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type CacheHint, type Extra, Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import { invalid } from "../../core/validation.ts";
import type { PortableQuirks } from "../turns/portable-turns.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { isJson, type JsonRecord } from "../../wire/json/value.ts";
import { itemIdFor, type ItemType } from "./wire.ts";
import { toolNameFor } from "../tools/tool-names.ts";

/** As in chat completions, except that dots are allowed. */
const shortName = toolNameFor({ charsMax: 64, dots: true });

/** The state. */
export class EncodeContext {
  /** The style that the request came in; undefined for a typed caller. */
  readonly source: Dialect | undefined;
  /** Whether it came in this style, so that its extras are restored. */
  readonly isOwn: boolean;
  readonly quirks: VendorQuirks & PortableQuirks;
  readonly #dropped = new Set<string>();

  constructor(source: Dialect | undefined, quirks: VendorQuirks = {}) {
    this.source = source;
    this.quirks = { blankText: "accepted", ...quirks };
    this.isOwn = source === Dialect.RESPONSES;
  }

  /** Members that could not be carried, without duplicates. */
  get dropped(): string[] {
    return [...this.#dropped];
  }

  /** Reports a member that cannot be carried. A bound function, so that it can be passed on. */
  readonly drop = (name: string): void => {
    this.#dropped.add(name);
  };

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

  /** Adds the extras of this style to an object. */
  withExtras(object: JsonRecord, extras: readonly Extra[]): JsonRecord {
    if (extras.length === 0) return object;
    if (!this.isOwn) {
      for (const { name } of extras) this.drop(name);
      return object;
    }
    // Not by assignment, since a member may be called `__proto__`.
    const added = extras.map(({ name, json }): [string, unknown] => [name, new JsonText(json)]);
    return Object.fromEntries([...Object.entries(object), ...added]);
  }

  /** Whether cache hints mean the same here as to the caller. */
  get takesBreakpoints(): boolean {
    return this.isOwn || this.source === Dialect.CHAT_COMPLETIONS;
  }

  /** Returns the member that ends a cached prefix. Assistant content cannot have one. */
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

  /** The tool's name, shortened to the vendor's limit. Names within a namespace stay unchanged. */
  toolName(name: string): string {
    return this.isOwn ? name : shortName({ name, namespace: "" });
  }

  /** The id and status of an item; none if its id cannot be sent. */
  identity(type: ItemType, id: string): JsonRecord {
    const sentId = this.isOwn ? id : itemIdFor(type, id);
    return sentId === "" ? {} : { id: sentId };
  }
}
