/** A native request, parsed no further than needed: the vendor gets its bytes. */
import type { JsonValue } from "@bufbuild/protobuf";
import { createHash } from "node:crypto";
import { append } from "../core/append.ts";
import { asBuffer } from "../core/bytes.ts";
import type { GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import { applyEdits, readOutline } from "../dialect/body-members.ts";
import type { Edit } from "../wire/json/splice.ts";
import { type AddressEdit, rewriteAddresses } from "../wire/json/addresses.ts";
import { findDuplicateMember } from "../wire/json/duplicate-member.ts";
import { type Member, type Outline, sliceText } from "../wire/json/outline.ts";
import { boundOf, requestSize, scanSize } from "../tokens/request-tokens.ts";
import type { NativeRequest } from "../provider/native.ts";

/** The parts of an HTTP request. */
export interface NativeBodyOptions {
  readonly groups: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** One native request. */
export class NativeBody implements NativeRequest {
  readonly groups: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly #bytes: Buffer;
  #outline: Outline | undefined;
  #whole: JsonValue | undefined;

  constructor({ groups, query, headers, body }: NativeBodyOptions) {
    this.groups = groups;
    this.query = query;
    this.headers = headers;
    this.#bytes = asBuffer(body);
  }

  get bytes(): number {
    return this.#bytes.length;
  }

  get inputTokens(): number {
    return boundOf(requestSize(this.#outline ?? scanSize(this.#bytes)));
  }

  /** SHA-256 of the body: equal for a repetition. */
  get fingerprint(): Buffer {
    return createHash("sha256").update(this.#bytes).digest();
  }

  /** @throws GatewayError INVALID_REQUEST if there is no body, or it is no JSON object */
  needBody(): void {
    if (this.#bytes.length === 0) throw invalid(undefined, "The body is empty: send a JSON object");
    this.#read();
  }

  member(...names: readonly string[]): JsonValue | undefined {
    const member = this.#find(names);
    if (member === undefined) return undefined;
    refuseTwice(this.#bytes.subarray(member.valueStart, member.valueEnd));
    return JSON.parse(sliceText(this.#bytes, member)) as JsonValue;
  }

  mentions(...names: readonly string[]): readonly string[] {
    if (this.#bytes.length === 0) return [];
    const { members, nested } = this.#read();
    const isThere = (name: string): boolean =>
      nested.mayHave(name) || members.some(({ key }) => key === name);
    if (names.length > 0 && !names.some(isThere)) return [];
    if (this.#whole === undefined) refuseTwice(this.#bytes);
    this.#whole ??= JSON.parse(this.#bytes.toString("utf8")) as JsonValue;
    const found: string[] = [];
    collect(this.#whole, names.length === 0 ? undefined : new Set(names), found);
    return found;
  }

  /** The body for the vendor with changes applied, in pieces. */
  forVendor(changes: BodyChanges): readonly Buffer[] {
    if (this.#bytes.length === 0) return [];
    const edits = this.#removals(changes.without ?? []);
    for (const [name, text] of changes.texts ?? []) {
      const member = this.#find([name]);
      if (member === undefined) continue;
      edits.push({ start: member.valueStart, end: member.valueEnd, text: JSON.stringify(text) });
    }
    append(edits, this.#renames(changes.model));
    const body = edits.length === 0 ? [this.#bytes] : applyEdits(this.#bytes, edits);
    return body.map((piece) => rewriteAddresses(piece, changes.addresses ?? []));
  }

  /**
   * Renames the model in every member named `model`. A quote inside a text is escaped, so no text
   * matches.
   */
  #renames(model: BodyChanges["model"]): Edit[] {
    if (model === undefined) return [];
    const { members, nested } = this.#read();
    if (!nested.mayHave("model") && !members.some(({ key }) => key === "model")) return [];
    const name = RegExp.escape(Buffer.from(model.from).toString("latin1"));
    const pattern = new RegExp(`"model"\\s*:\\s*"(?:models/)?(${name})"`, "dg");
    return [...this.#bytes.toString("latin1").matchAll(pattern)].flatMap(({ indices }) => {
      const [start, end] = indices?.[1] ?? [];
      return start === undefined || end === undefined ? [] : [{ start, end, text: model.to }];
    });
  }

  /**
   * Edits that remove members, each with one comma: the one after it, or the one before the last
   * kept member's end.
   */
  #removals(names: readonly string[]): Edit[] {
    if (names.length === 0) return [];
    const { members } = this.#read();
    const lastKept = members.findLastIndex(({ key }) => !names.includes(key));
    const edits: Edit[] = [];
    for (const [at, member] of members.entries()) {
      const next = members[at + 1];
      if (at > lastKept || next === undefined || !names.includes(member.key)) continue;
      edits.push({ start: member.keyStart, end: next.keyStart, text: "" });
    }
    const last = members.at(-1);
    if (last === undefined || lastKept === members.length - 1) return edits;
    const start = members[lastKept]?.valueEnd ?? members[0]?.keyStart ?? last.valueEnd;
    return [...edits, { start, end: last.valueEnd, text: "" }];
  }

  /**
   * Finds a member by its spellings. Refuses duplicates: the gateway and the vendor could read
   * different ones.
   */
  #find(names: readonly string[]): Member | undefined {
    if (this.#bytes.length === 0) return undefined;
    const found = this.#read().members.filter(({ key }) => names.includes(key));
    if (found.length <= 1) return found[0];
    const [name = ""] = names;
    throw twice(name);
  }

  #read(): Outline {
    return (this.#outline ??= readOutline(this.#bytes));
  }
}

/** @throws GatewayError INVALID_REQUEST if an object of the value has a name twice */
function refuseTwice(value: Buffer): void {
  const found = findDuplicateMember(value);
  if (found !== undefined) throw twice(found.name);
}

function twice(name: string): GatewayError {
  return invalid(name, `"${name}" occurs twice in the body; send it once`);
}

/** Changes of a body. */
export interface BodyChanges {
  /** Members to remove. None by default. */
  readonly without?: readonly string[];
  /** New texts by member. None by default. */
  readonly texts?: ReadonlyMap<string, string>;
  /** Renames the model if the body repeats the name of the path. Unchanged by default. */
  readonly model?: { readonly from: string; readonly to: string };
  /** Replaces the gateway's addresses by the vendor's. None by default. */
  readonly addresses?: readonly AddressEdit[];
}

function collect(value: JsonValue, names: ReadonlySet<string> | undefined, found: string[]): void {
  if (names === undefined && typeof value === "string") found.push(value);
  if (typeof value !== "object" || value === null) return;
  for (const [name, each] of Object.entries(value)) {
    if (names?.has(name) && typeof each === "string") found.push(each);
    else if (names?.has(name) && Array.isArray(each)) collect(each, undefined, found);
    else if (each !== undefined) collect(each, names, found);
  }
}
