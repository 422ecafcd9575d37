/** What the encoder's parts share: what the model can, and what could not be carried. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Extra, ReasoningSeal } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { RequestTarget } from "../codec.ts";
import type { JsonRecord } from "../json/value.ts";

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

/** The error for what cannot be left out without changing what is asked for. */
export function refused(message: string, param?: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, param === undefined ? {} : { param });
}

/*
 * Where a signature stood: Gemini wants it back there. Elsewhere a seal belongs to reasoning; here it may
 * come with any part, so the seal says which. Google's signatures are base64 and have no dot.
 */

/** `call`: on the function call that follows the reasoning; `thought`: on the thought itself; `content`: on
 * the text or picture before the reasoning. */
export type SealPlace = "call" | "thought" | "content";

const marks = { thought: "thought.", content: "content." } as const;

/** Gemini's seal: for a call, nearly all there are, it is the signature as it came. */
export function sealOf(signature: string, place: SealPlace): ReasoningSeal {
  return {
    $typeName: "uas.inference.v1.ReasoningSeal",
    dialect: Dialect.GEMINI,
    signature: place === "call" ? signature : marks[place] + signature,
    data: "",
  };
}

/** What {@link sealOf} made a seal of. */
export function openPlace({ signature }: ReasoningSeal): {
  readonly signature: string;
  readonly place: SealPlace;
} {
  for (const place of ["thought", "content"] as const) {
    const mark = marks[place];
    if (signature.startsWith(mark)) return { signature: signature.slice(mark.length), place };
  }
  return { signature, place: "call" };
}
