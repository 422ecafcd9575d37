/** State of one request while it is written for Gemini. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { RequestTarget } from "../codec.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import type { JsonRecord } from "../../wire/json/value.ts";

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

  /** The extras to restore; those of another style are reported as dropped. */
  extras(extras: readonly Extra[]): JsonRecord {
    if (this.#isOwn) {
      return Object.fromEntries(extras.map(({ name, json }) => [name, new JsonText(json)]));
    }
    for (const { name } of extras) this.drop(name);
    return {};
  }
}

// Differences between Gemini series, derived from the model name.

/** How a model's series differs, by its name. */
interface ModelTraits {
  /** Whether it takes a thinking level (from Gemini 3 on) or a budget (2.5); `undefined`: neither. */
  readonly thinking: "level" | "budget" | undefined;
  /** Whether it refuses a function call without the signature that it came with: from Gemini 3 on. */
  readonly needsSignatures: boolean;
  /** Whether a function may answer with pictures: from Gemini 3 on. */
  readonly mediaResponses: boolean;
  /** Whether it is a model that always thinks, and has no lowest level. */
  readonly isPro: boolean;
}

/** Reads the series from the model's name. Names without one (`gemini-flash-latest`, a tuned model) are
 * taken for the newest where they say so, else for 2.5. */
function traitsOf(model: string): ModelTraits {
  const [, major, minor = "0"] = /gemini-(\d+)(?:\.(\d+))?/.exec(model) ?? [];
  const isLatest = model.endsWith("-latest");
  const series = major === undefined ? (isLatest ? 3 : 2.5) : Number(`${major}.${minor}`);
  const isNew = series >= 3;
  return {
    thinking: isNew ? "level" : series >= 2.5 ? "budget" : undefined,
    needsSignatures: isNew,
    mediaResponses: isNew,
    isPro: /-pro\b/.test(model),
  };
}
