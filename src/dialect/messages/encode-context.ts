/** What the parts of an encoder share while a request is written. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type {
  CacheHint,
  Extra,
  OpaquePart,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import { type JsonBranch, JsonText } from "../json/json-tree.ts";

/** The most blocks that may end a cached prefix: the vendor refuses a request with more. */
const cacheHintsMax = 4;

/** No members. One for all: most turns and parts have none. */
const none: JsonBranch = Object.freeze({});

const ttls: ReadonlySet<string> = new Set(["5m", "1h"]);

/** Collects what could not be carried, and what the version of the wire depends on. */
export class EncodeContext {
  /** Whether the request came in this very style: its extras and opaque parts go back as they were. */
  readonly isOwn: boolean;
  /** Whether something is sent that only the older version of the wire takes. */
  needsOldVersion = false;
  readonly #dropped = new Set<string>();
  #cacheHints = 0;

  constructor(sourceDialect: Dialect | undefined) {
    this.isOwn = sourceDialect === Dialect.MESSAGES;
  }

  /** What could not be carried, each once. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Reports a field of the contract, by its path, or an extra, by its name. */
  drop(name: string): void {
    this.#dropped.add(name);
  }

  /** The extras as members, where they are of this style; otherwise none. */
  extras(extras: readonly Extra[]): JsonBranch {
    if (extras.length === 0) return none;
    if (!this.isOwn) {
      for (const { name } of extras) this.drop(name);
      return none;
    }
    return Object.fromEntries(extras.map(({ name, json }) => [name, new JsonText(json)]));
  }

  /** What only this style knows, as it was. @throws GatewayError INVALID_REQUEST for that of another */
  opaque({ dialect, type, json }: OpaquePart, what: string): JsonText {
    if (dialect === Dialect.MESSAGES) return new JsonText(json);
    throw invalid(what, `${what} of type "${type}" is not available for this model: leave it out`);
  }

  /** The member that ends a cached prefix. */
  cacheControl(hint: CacheHint | undefined): JsonBranch {
    if (hint === undefined) return none;
    if (this.#cacheHints >= cacheHintsMax && !this.isOwn) {
      this.drop("cache_hint");
      return none;
    }
    this.#cacheHints++;
    const { ttl } = hint;
    const isKnown = ttls.has(ttl) || (this.isOwn && ttl !== "");
    return { cache_control: { type: "ephemeral", ...(isKnown && { ttl }) } };
  }
}
