/**
 * What a vendor must not be asked under the operator's one key: for another model than the one that the key
 * may use and the price is for, and for what it keeps for somebody. Read in the body as the vendor gets it, so
 * that no door is forgotten. Pure.
 */
import { asBuffer } from "../core/bytes.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import type { Outline } from "./json/outline.ts";
import { isRecord, type JsonRecord, parseRecord, recordAt, textAt } from "./json/value.ts";

/** What a guard is told of a request. */
export interface GuardOptions {
  /** Whether it has been checked that what the request refers to is its account's. */
  readonly isVerified: boolean;
  /** The vendor's configured address: what it keeps may lie there. Absent: only its own well-known ones. */
  readonly vendorUrl?: string | undefined;
  /** The body's outline, where it has been read already. Absent: the body is searched. */
  readonly outline?: Outline;
}

/**
 * Checks a body.
 *
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export type Guard = (body: Uint8Array, options: GuardOptions) => void;

/** What a guard must look at. A body that has none of it is not read. */
export interface GuardedNames {
  /** Names at the top level. */
  readonly members: readonly string[];
  /** Names below it. */
  readonly nested: readonly string[];
  /** Types of tools, as patterns. Default: none. */
  readonly tools?: readonly string[];
}

/**
 * Makes a guard that reads a body only where it has one of the suspects: the outline tells at once, searching
 * takes a third of the time of reading. A name written with escapes is none that any client writes, and makes
 * it read too.
 */
export function guardOf(
  { members, nested, tools = [] }: GuardedNames,
  check: (record: JsonRecord, options: GuardOptions) => void,
): Guard {
  const topLevel = new Set(members);
  const suspects = patternOf([...members, ...nested, ...tools]);
  const tool = tools.length === 0 ? undefined : patternOf(tools);
  // An item of the input can bring tools, too.
  const searched = tool === undefined ? nested : [...nested, "tools"];
  const isSuspect = (bytes: Buffer, outline: Outline | undefined): boolean => {
    if (outline === undefined) return suspects.test(bytes.toString("latin1"));
    if (searched.some((name) => outline.nested.mayHave(name))) return true;
    return outline.members.some(
      ({ key, valueStart, valueEnd }) =>
        topLevel.has(key) ||
        (key === "tools" && tool?.test(bytes.toString("latin1", valueStart, valueEnd))),
    );
  };
  return (body, options) => {
    const bytes = asBuffer(body);
    if (options.isVerified && !isSuspect(bytes, options.outline)) return;
    const record = parseRecord(bytes.toString("utf8"));
    if (record !== undefined) check(record, options);
  };
}

function patternOf(names: readonly string[]): RegExp {
  return new RegExp(`"(?:${names.join("|")})"|\\\\u00[2-7]`);
}

/** Refuses a member that names another model. */
export function refuseModel(path: string): GatewayError {
  return invalid(
    path,
    `"${path}" asks another model than "model": the gateway knows neither its price nor who may use it; leave it out`,
  );
}

/** Refuses a member that names what a vendor keeps. */
export function refuseStored(path: string, instead: string): GatewayError {
  return invalid(
    path,
    `"${path}" names what the model's vendor keeps, and the gateway cannot tell whose it is: ${instead}`,
  );
}

/** Refuses a way of serving that costs more than the model's price. */
export function refuseHigherPrice(path: string, instead: string): GatewayError {
  return invalid(
    path,
    `"${path}" asks for a service that costs more than the model's price: ${instead}`,
  );
}

/** What vendors call the tiers that cost more. */
const expensiveTiers: ReadonlySet<unknown> = new Set(["priority", "fast", "ultrafast"]);

/** Refuses tiers that cost more. */
export function checkServiceTier(tier: unknown): void {
  if (!expensiveTiers.has(tier)) return;
  throw refuseHigherPrice("service_tier", 'send "auto", "default" or "flex", or leave it out');
}

/** Checks the tools of a request, and those inside of them. */
export function checkTools(tools: unknown, path: string): void {
  if (!Array.isArray(tools)) return;
  for (const [at, tool] of tools.entries()) {
    if (isRecord(tool)) checkTool(tool, `${path}[${at}]`);
  }
}

function checkTool(tool: JsonRecord, path: string): void {
  // Its pictures are another model's work, whether it names the model or not.
  if (textAt(tool, "type") === "image_generation") {
    throw refuseModel(tool["model"] == null ? `${path}.type` : `${path}.model`);
  }
  if (tool["model"] != null) throw refuseModel(`${path}.model`);
  const send = "leave it out, and send what is needed in the request";
  if (tool["vector_store_ids"] != null) throw refuseStored(`${path}.vector_store_ids`, send);
  checkContainer(tool["container"], `${path}.container`);
  checkContainer(tool["environment"], `${path}.environment`);
  checkTools(tool["tools"], `${path}.tools`);
}

/** Checks where code runs: a new place is made for it, or it is one's own machine. */
export function checkContainer(container: unknown, path: string): void {
  const instead = "leave it out, and the vendor makes a new one";
  if (typeof container === "string") throw refuseStored(path, instead);
  if (!isRecord(container)) return;
  for (const name of ["id", "container_id"]) {
    if (container[name] != null) throw refuseStored(`${path}.${name}`, instead);
  }
  if (Array.isArray(container["file_ids"]) && container["file_ids"].length > 0) {
    throw refuseStored(`${path}.file_ids`, "send the files in the request");
  }
}

/** Types of parts, blocks and sources that take a file by its id. Others repeat what the model made. */
const fileTypes: ReadonlySet<string> = new Set([
  "file",
  "input_file",
  "input_image",
  "computer_screenshot",
  "container_upload",
]);

/** Where files stand in an item, a message, a part or a block. */
const holders = ["content", "output", "source", "file"] as const;

/** Refuses ids of files anywhere in the messages or items of a request. */
export function checkFiles(value: unknown, path: string, type = ""): void {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) checkFiles(each, `${path}[${at}]`);
    return;
  }
  if (!isRecord(value)) return;
  const own = textAt(value, "type") || type;
  if (value["file_id"] != null && fileTypes.has(own)) {
    throw refuseStored(`${path}.file_id`, "send the file itself, or its address");
  }
  // In chat completions the file is an object without a type of its own.
  for (const name of holders) {
    checkFiles(value[name], `${path}.${name}`, name === "file" ? "file" : "");
  }
}

/** A thread that the vendor keeps. The style's SDK sends the whole history again where it is told so in just
 * these words. */
export function unsupportedThread(): GatewayError {
  const text = '"thread" cannot be kept for this model: send the whole conversation without it';
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, {
    param: "thread",
    details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
}

/** Refuses what a style's moderation of its own is done with. */
export function checkModeration(record: JsonRecord): void {
  if (recordAt(record, "moderation") !== undefined) throw refuseModel("moderation.model");
}
