/** State of one request while it is written for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type {
  CacheHint,
  Extra,
  OpaquePart,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import { invalid } from "../../core/validation.ts";
import type { RequestTarget } from "../codec.ts";
import type { PortableQuirks } from "../turns/portable-turns.ts";
import { type ModelTraits, traitsOf } from "./model-traits.ts";
import { type JsonBranch, JsonText } from "../../wire/json/json-tree.ts";
import { parseRecord } from "../../wire/json/value.ts";

/** Most blocks that may end a cached prefix; the vendor refuses more. */
const cacheHintsMax = 4;

/** A shared empty object, since most turns and parts have no extras. */
const none: JsonBranch = Object.freeze({});

const ttls: ReadonlySet<string> = new Set(["5m", "1h"]);

/** Collects members that cannot be carried, and facts that the API version depends on. */
export class EncodeContext {
  /** Whether the request came in this style, so that extras and opaque parts are restored. */
  readonly isOwn: boolean;
  /** The features of the vendor's model. */
  readonly traits: ModelTraits;
  readonly quirks: VendorQuirks & PortableQuirks;
  /** Whether the body contains something that only the older API version accepts. */
  needsOldVersion = false;
  readonly #dropped = new Set<string>();
  #cacheHints = 0;

  constructor({ sourceDialect, model, quirks = {} }: RequestTarget) {
    this.isOwn = sourceDialect === Dialect.MESSAGES;
    this.traits = traitsOf(model);
    this.quirks = { blankText: "refused", ...quirks };
  }

  /**
   * Position of late system text. The client's own text is moved only if the vendor is known to
   * refuse it.
   */
  get lateSystem(): "in_place" | "as_user" | "at_top" {
    const { lateSystem = this.isOwn } = this.traits;
    return this.quirks.lateSystem ?? (lateSystem ? "in_place" : "as_user");
  }

  /** Whether a final message of the assistant is refused. */
  get refusesPrefill(): boolean {
    const { prefill } = this.quirks;
    return prefill === undefined ? !this.traits.prefill : prefill === "refused";
  }

  /** Members that could not be carried, without duplicates. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Reports a field of the contract, by its path, or an extra, by its name. */
  drop(name: string): void {
    this.#dropped.add(name);
  }

  /** The extras as members, if they are of this style; otherwise none. */
  extras(extras: readonly Extra[]): JsonBranch {
    if (extras.length === 0) return none;
    if (!this.isOwn) {
      for (const { name } of extras) this.drop(name);
      return none;
    }
    return Object.fromEntries(extras.map(({ name, json }) => [name, new JsonText(json)]));
  }

  /** Restores an opaque part. @throws GatewayError INVALID_REQUEST for one of another style */
  opaque({ dialect, type, json }: OpaquePart, what: string): JsonText {
    if (dialect === Dialect.MESSAGES) {
      // A typed caller may have sent anything; other requests were parsed.
      if (this.isOwn || parseRecord(json) !== undefined) return new JsonText(json);
      throw invalid(what, `${what} of type "${type}" is not a JSON object`);
    }
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
