/** What the encoder's parts share: what the model can, and what could not be carried. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { RequestTarget } from "../codec.ts";
import { type ModelTraits, traitsOf } from "./model-traits.ts";
import type { JsonRecord } from "../json/value.ts";

/** The state of one encoding. */
export class EncodeContext {
  readonly traits: ModelTraits;
  readonly #isOwn: boolean;
  readonly #dropped = new Set<string>();

  constructor(target: RequestTarget) {
    this.traits = traitsOf(target.model);
    this.#isOwn = target.sourceDialect === Dialect.GEMINI;
  }

  /** What could not be carried, each once. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Notes something that cannot be carried, by its path in the contract. */
  drop(path: string): void {
    this.#dropped.add(path);
  }

  /** The members to write back; those of another style are noted as dropped. */
  extras(extras: readonly Extra[]): JsonRecord {
    if (this.#isOwn) {
      return Object.fromEntries(
        extras.map(({ name, json }) => [name, JSON.parse(json) as unknown]),
      );
    }
    for (const { name } of extras) this.drop(name);
    return {};
  }
}
