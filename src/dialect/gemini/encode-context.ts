/** State of one request while it is written for Gemini. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { RequestTarget } from "../codec.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { type ModelTraits, traitsOf } from "./model-traits.ts";

/** The state of one encoding. */
export class EncodeContext {
  readonly traits: ModelTraits;
  readonly #isOwn: boolean;
  readonly #dropped = new Set<string>();

  constructor(target: RequestTarget) {
    this.traits = traitsOf(target.model);
    this.#isOwn = target.sourceDialect === Dialect.GEMINI;
  }

  /** Members that could not be carried, without duplicates. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Reports a member that cannot be carried, by its path in the contract. */
  drop(path: string): void {
    this.#dropped.add(path);
  }

  /** Returns the extras to restore; extras of another style are reported as dropped. */
  extras(extras: readonly Extra[]): JsonRecord {
    if (this.#isOwn) {
      return Object.fromEntries(extras.map(({ name, json }) => [name, new JsonText(json)]));
    }
    for (const { name } of extras) this.drop(name);
    return {};
  }
}
