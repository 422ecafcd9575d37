/**
 * Refuses requests that must not use the operator's key: requests for another model than the
 * allowed and priced one, and requests that name objects stored for other customers at the vendor.
 * It checks the final body, so that no route can bypass it. Pure.
 */
import { asBuffer } from "../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import { sameTiers, type ServiceTier, tierOfWord } from "../../core/service-tiers.ts";
import type { Outline } from "../../wire/json/outline.ts";
import {
  type BilledFeatures,
  type FeatureRules,
  FeatureUse,
  type ToolTypeCheck,
} from "./billed-features.ts";
import { findDuplicateMember, guardedNames } from "../../wire/json/duplicate-member.ts";
import type { FoundMedia } from "../../wire/json/media.ts";
import { isRecord, type JsonRecord, parseRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** Facts about a request. */
export interface GuardOptions extends FeatureRules {
  /** Whether the account's ownership of all referenced objects was verified. */
  readonly isVerified: boolean;
  /**
   * The vendor's configured URL, if stored objects may lie. Absent means only its well-known hosts.
   */
  readonly vendorUrl?: string | undefined;
  /** File buckets that all callers of the vendor may name. Absent if there are none. */
  readonly fileBuckets?: readonly string[] | undefined;
  /** The outline of the body, if known. Absent if the body is searched. */
  readonly outline?: Outline;
}

/**
 * Checks a body.
 *
 * @returns requested features beyond text; undefined if there are none
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export type Guard = (body: Uint8Array, options: GuardOptions) => BilledFeatures | undefined;

/** The names that make a guard parse a body. Bodies without any of them are not parsed. */
export interface GuardedNames {
  /** Names at the top level. */
  readonly members: readonly string[];
  /** Names below it. */
  readonly nested: readonly string[];
  /** Whether the JSON of `tools` may contain a tool that is billed or refused. */
  readonly areToolsSuspect: (json: string) => boolean;
  /** The kinds of media whose audio the vendor bills. */
  readonly audible: ReadonlySet<FoundMedia["kind"]>;
}

/**
 * Creates a guard that parses a body only if it contains a guarded name. The outline answers that
 * at once; searching takes a third of the time of parsing. No client escapes ASCII in names, so a
 * body with such escapes is parsed too.
 */
export function guardOf(
  { members, nested, areToolsSuspect, audible }: GuardedNames,
  check: (record: JsonRecord, options: GuardOptions, found: GuardedBody) => void,
): Guard {
  const topLevel = new Set(members);
  // Items of the input can contain tools too.
  const searched = [...nested, "tools"];
  const suspects = new RegExp(`"(?:${[...members, ...searched].join("|")})"|\\\\u00[2-7]`);
  const isSuspect = (bytes: Buffer, outline: Outline | undefined): boolean => {
    if (outline === undefined) return suspects.test(bytes.toString("latin1"));
    if (outline.nested.hasLookalike) return true;
    if (searched.some((name) => outline.nested.mayHave(name))) return true;
    return outline.members.some(
      ({ key, valueStart, valueEnd }) =>
        topLevel.has(key) ||
        (key === "tools" && areToolsSuspect(bytes.toString("latin1", valueStart, valueEnd))),
    );
  };
  return (body, options) => {
    const bytes = asBuffer(body);
    const hasAudio = options.outline !== undefined && hasMedia(options.outline, audible);
    if (options.isVerified && !hasAudio && !isSuspect(bytes, options.outline)) return undefined;
    const record = parseRecord(bytes.toString("utf8"));
    if (record === undefined) return undefined;
    refuseTwice(bytes);
    const use = new FeatureUse(options);
    if (hasAudio) use.use("audio_input", audioPath(record, "") ?? "messages", "audio");
    check(record, options, { bytes, use });
    return use.features;
  };
}

/** Refuses a repeated member: our parser uses the last one, a vendor's may use the first. */
function refuseTwice(bytes: Buffer): void {
  const twice = findDuplicateMember(bytes);
  if (twice === undefined) return;
  throw invalid(twice.path, `"${twice.path}" occurs twice in the body; send it once`);
}

/** Refuses a member that some vendors' parsers take for a guarded one: they ignore case. */
export function refuseLookalikes(record: JsonRecord, path: string): void {
  for (const name of Object.keys(record)) {
    const meant = name.toLowerCase();
    if (meant === name || !guarded.has(meant)) continue;
    const where = path === "" ? name : `${path}.${name}`;
    throw invalid(where, `"${where}" is not known; did you mean "${meant}"?`);
  }
}

const guarded: ReadonlySet<string> = new Set(guardedNames);

/** A body that is checked. */
export interface GuardedBody {
  readonly bytes: Buffer;
  /** Collects the billed features. */
  readonly use: FeatureUse;
}

function hasMedia({ media }: Outline, kinds: ReadonlySet<FoundMedia["kind"]>): boolean {
  for (const { kind } of media) if (kinds.has(kind)) return true;
  return false;
}

/** The path of the first audio or video in a body; undefined if it has another form. */
function audioPath(value: unknown, path: string): string | undefined {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) {
      if (typeof each !== "object") continue;
      const found = audioPath(each, `${path}[${at}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const type = textAt(value, "mimeType") || textAt(value, "mime_type");
  if (/^(?:audio|video)\//.test(type)) return path;
  for (const [name, each] of Object.entries(value)) {
    const member = path === "" ? name : `${path}.${name}`;
    if (/audio|video/.test(name) && each != null) return member;
    const found = audioPath(each, member);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Refuses a member that names another model. */
export function refuseModel(path: string): GatewayError {
  return invalid(
    path,
    `"${path}" requests another model than "model": the gateway knows neither its price nor whether the key may use it; leave it out`,
  );
}

/** Refuses a member that names an object stored at the vendor. */
export function refuseStored(path: string, instead: string): GatewayError {
  return invalid(
    path,
    `"${path}" refers to data that the model's vendor stores, and the gateway does not know its owner: ${instead}`,
  );
}

/** Refuses a service level above the model's price. */
export function refuseHigherPrice(path: string, instead: string): GatewayError {
  return invalid(
    path,
    `"${path}" requests a service that costs more than the model's price: ${instead}`,
  );
}

/**
 * Vendors' names of tiers that cost at most the model's price, unless a tier has a separate price.
 */
const coveredTiers: ReadonlySet<unknown> = new Set([
  undefined,
  null,
  "",
  "auto",
  "default",
  "standard",
  "standard_only",
  "on_demand",
  "flex",
]);

/** The tiers of which OpenAI chooses one for `auto`. Of batches the request itself is one. */
const autoTiers = ["flex", "priority", "fast", "ultrafast"] as const;

/**
 * Refuses unknown tiers, and tiers more expensive than the model's price for them.
 *
 * @param use Default: the call is charged by the price of the usual tier
 * @param auto tiers from which the vendor chooses, besides the usual one. Default: OpenAI's
 */
export function checkServiceTier(
  tier: unknown,
  use?: FeatureUse,
  auto: readonly ServiceTier[] = autoTiers,
): void {
  if (typeof tier === "string") {
    const meant = tierOfWord(tier);
    if (/^auto$/i.test(tier)) use?.allowTiers(auto);
    else if (meant !== undefined && meant !== "standard") {
      const same = sameTiers(meant);
      use?.allowTiers(same);
      if (same.some((each) => use?.hasPrice(`tiers.${each}`) === true)) return;
    }
  }
  if (coveredTiers.has(typeof tier === "string" ? tier.toLowerCase() : tier)) return;
  throw refuseHigherPrice("service_tier", 'send "auto", "default" or "flex", or leave it out');
}

/**
 * Refuses if and how fast a request is to be served, if that costs more than the model has prices
 * for.
 */
export function checkSpeed({ speed, inference_geo: place }: JsonRecord, use: FeatureUse): void {
  if (speed === "fast" && use.hasPrice("tiers.fast")) use.allowTiers(["fast"]);
  else if (speed != null && speed !== "standard") {
    throw refuseHigherPrice("speed", 'send "standard", or leave it out');
  }
  if (place != null && place !== "global") {
    throw refuseHigherPrice("inference_geo", 'send "global", or leave it out');
  }
}

/** Rules for tools. */
export interface ToolCheck {
  readonly checkType: ToolTypeCheck;
  readonly use: FeatureUse;
}

/** Checks the tools of a request, including nested ones. */
export function checkTools(tools: unknown, path: string, check: ToolCheck): void {
  if (!Array.isArray(tools)) return;
  for (const [at, tool] of tools.entries()) {
    if (isRecord(tool)) checkTool(tool, `${path}[${at}]`, check);
  }
}

/** Checks one tool, including those nested in it. */
export function checkTool(tool: JsonRecord, path: string, check: ToolCheck): void {
  refuseLookalikes(tool, path);
  // Its images come from another model, whether it is named or not.
  if (textAt(tool, "type") === "image_generation") {
    throw refuseModel(tool["model"] == null ? `${path}.type` : `${path}.model`);
  }
  if (tool["model"] != null) throw refuseModel(`${path}.model`);
  const send = "leave it out, and send what is needed in the request";
  if (!hasSharedStores(tool, check)) throw refuseStored(`${path}.vector_store_ids`, send);
  checkContainer(tool["container"], `${path}.container`);
  // A computer's is a word.
  if (isRecord(tool["environment"])) checkContainer(tool["environment"], `${path}.environment`);
  checkTools(tool["tools"], `${path}.tools`, check);
  check.checkType(tool, path, check.use);
}

/**
 * Whether a tool names no stores of files, or only those that the operator shares with all callers
 * of the model.
 */
function hasSharedStores(tool: JsonRecord, { use }: ToolCheck): boolean {
  const { vector_store_ids: ids } = tool;
  if (ids == null) return true;
  if (textAt(tool, "type") !== "file_search" || !Array.isArray(ids)) return false;
  return ids.every((id) => use.isSharedStore(id));
}

/** Checks if code runs: only in a new container, or on the client's machine. */
export function checkContainer(container: unknown, path: string): void {
  const instead = "leave it out, and the vendor makes a new one";
  if (typeof container === "string") throw refuseStored(path, instead);
  if (!isRecord(container)) return;
  refuseLookalikes(container, path);
  const { memory_limit: memory } = container;
  if (memory != null && memory !== "1g") {
    throw refuseHigherPrice(`${path}.memory_limit`, 'send "1g", or leave it out');
  }
  for (const name of ["id", "container_id"]) {
    if (container[name] != null) throw refuseStored(`${path}.${name}`, instead);
  }
  if (Array.isArray(container["file_ids"]) && container["file_ids"].length > 0) {
    throw refuseStored(`${path}.file_ids`, "send the files in the request");
  }
  checkSkills(container["skills"], `${path}.skills`);
}

/** The types of uploaded skills. Others are the vendor's own, or sent in the request. */
const storedSkills: ReadonlySet<unknown> = new Set(["custom", "skill_reference"]);

function checkSkills(skills: unknown, path: string): void {
  if (!Array.isArray(skills)) return;
  for (const [at, skill] of skills.entries()) {
    if (!isRecord(skill) || !storedSkills.has(skill["type"])) continue;
    throw refuseStored(`${path}[${at}].skill_id`, "leave it out");
  }
}

/**
 * Types of parts, blocks and sources that take a file id. Other types repeat the model's output.
 */
const fileTypes: ReadonlySet<string> = new Set([
  "file",
  "input_file",
  "input_image",
  "computer_screenshot",
  "container_upload",
]);

/** Members of items, messages, parts and blocks that can contain files. */
const holders = ["content", "output", "source", "file"] as const;

/** Refuses file ids anywhere in the messages or items of a request. */
export function checkFiles(value: unknown, path: string, type = ""): void {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) {
      // Not for each number of a long list: the path takes longer than the check.
      if (typeof each === "object") checkFiles(each, `${path}[${at}]`);
    }
    return;
  }
  if (!isRecord(value)) return;
  refuseLookalikes(value, path);
  const own = textAt(value, "type") || type;
  if (value["file_id"] != null && fileTypes.has(own)) {
    throw refuseStored(`${path}.file_id`, "send the file itself, or its address");
  }
  // In chat completions the file object has no type.
  for (const name of holders) {
    checkFiles(value[name], `${path}.${name}`, name === "file" ? "file" : "");
  }
}

/**
 * The error for a thread stored at the vendor. The style's SDK resends the whole history when it
 * sees exactly these words.
 */
export function unsupportedThread(): GatewayError {
  const text = '"thread" cannot be kept for this model: send the whole conversation without it';
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, {
    param: "thread",
    details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
}

/** Refuses a style's own moderation settings. */
export function checkModeration(record: JsonRecord): void {
  if (recordAt(record, "moderation") !== undefined) throw refuseModel("moderation.model");
}
