/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkModalities,
  FeatureUse,
  refuseUnknown,
  toolTypeCheck,
  type ToolRules,
} from "../features/billed-features.ts";
import { invalid } from "../../core/validation.ts";
import { checkServiceTier, guardOf, refuseStored } from "../features/guard.ts";
import { namesToCheck } from "../features/member-class.ts";
import { geminiMembers, geminiTools } from "./members.ts";
import { isRecord, type JsonRecord, parseRecord, recordsAt } from "../../wire/json/value.ts";

const suspects = {
  members: namesToCheck(geminiMembers),
  nested: ["fileUri", "file_uri", "responseModalities", "response_modalities"],
  areToolsSuspect: hasOwnTool,
  // A video has a track of audio.
  audible: new Set(["audio", "video"] as const),
};

/** Whether one of the tools is not the caller's function. Tools have names here, and no types. */
function hasOwnTool(json: string): boolean {
  return recordsAt(parseRecord(`{"tools":${json}}`) ?? {}, "tools").some((tool) =>
    Object.keys(tool).some((name) => !isFunctions(name)),
  );
}

function isFunctions(name: string): boolean {
  return name === "functionDeclarations" || name === "function_declarations";
}

/**
 * Checks a body for Gemini. The gateway always writes it, because callers use other member names;
 * only parts and tools specific to Gemini pass unchanged.
 */
export const guardGemini = guardOf(suspects, (body, { vendorUrl, fileBuckets = [] }, { use }) => {
  checkServiceTier(body["serviceTier"], use);
  const places = { vendorHost: hostOf(vendorUrl ?? ""), fileBuckets };
  for (const content of recordsAt(body, "contents")) checkFiles(content["parts"], places);
  checkGeminiTools(body["tools"], use);
  checkGeminiConfig(body["generationConfig"], use);
});

/** The places of files that matter. */
interface FilePlaces {
  readonly vendorHost: string | undefined;
  readonly fileBuckets: readonly string[];
}

/** Refuses files that the vendor keeps, in parts and in what is below them. */
function checkFiles(value: unknown, places: FilePlaces): void {
  if (Array.isArray(value)) {
    for (const each of value) checkFiles(each, places);
    return;
  }
  if (!isRecord(value)) return;
  for (const [name, each] of Object.entries(value)) {
    // Inputs and outputs of tools are free content.
    if (name === "functionCall" || name === "response") continue;
    if (!uriNames.has(name)) checkFiles(each, places);
    else if (typeof each === "string" && isInBucket(each)) {
      checkBucket("url", each, places.fileBuckets);
    } else if (!isPublic(each, places.vendorHost)) {
      throw refuseStored("url", "send the file itself, or a public address");
    }
  }
}

/** Google takes both spellings. */
const uriNames: ReadonlySet<string> = new Set(["fileUri", "file_uri"]);

/**
 * Whether an address, parsed by the URL standard, is public: not a file name, not another scheme,
 * not an address of the vendor.
 */
function isPublic(uri: unknown, vendorHost: string | undefined): boolean {
  if (typeof uri !== "string" || !/^\s*https?:/i.test(uri)) return false;
  const host = hostOf(uri);
  return host !== undefined && host !== vendorHost && !isGoogleHost(host);
}

/** Whether an address, as the URL standard reads it, is one of Google Cloud Storage. */
export function isInBucket(uri: string): boolean {
  return URL.parse(uri)?.protocol === "gs:";
}

/**
 * Refuses a file of a bucket that the operator does not share with all customers: the vendor reads
 * it as the operator.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function checkBucket(path: string, uri: string, shared: readonly string[]): void {
  const [, bucket] = /^gs:\/\/([^/]+)\/./.exec(uri) ?? [];
  if (bucket !== undefined && shared.includes(bucket)) return;
  throw invalid(
    path,
    `"${path}" names a file of a bucket that is not shared here: send the file itself, or a public address; the operator shares buckets with file_buckets of the vendor in uas.yaml`,
  );
}

/**
 * Whether files lie there that were uploaded with the operator's key. @param host without a dot at
 * its end
 */
export function isGoogleHost(host: string): boolean {
  return ownHost.test(host);
}

const ownHost = /(?:^|[.-])generativelanguage\.(?:[\w-]+\.)*googleapis\.com$/;

/** Undefined if it is no address. */
function hostOf(address: string): string | undefined {
  return URL.parse(address)?.hostname.replace(/\.$/, "");
}

/** The refused members, in both spellings that Google takes. */
const refusedMembers = Object.entries(geminiMembers)
  .filter(([, of]) => of === "refused")
  .flatMap(([name]) => [name, name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]);

/**
 * Refuses members with which Google chooses another model, or uses templates and buckets of the
 * operator.
 */
export function refuseGeminiMembers(memberOf: (name: string) => unknown): void {
  for (const name of refusedMembers) {
    if (memberOf(name) != null) throw refuseUnknown(name, `"${name}"`);
  }
}

/** Checks tools that Google runs. Functions are the caller's own. */
export function checkGeminiTools(tools: unknown, use: FeatureUse): void {
  for (const tool of Array.isArray(tools) ? tools : [tools]) {
    if (isRecord(tool)) checkTool(tool, use);
  }
}

const interactionTools: ToolRules = {
  // The caller operates the computer.
  free: ["function", "computer_use"],
  billed: [
    [/^google_search/, "tools.web_search"],
    [/^code_execution$/, "tools.code_execution"],
    [/^url_context$/, "tools.web_fetch"],
    [/^file_search$/, "tools.file_search"],
  ],
  refused: [],
};

const checkInteractionTool = toolTypeCheck(interactionTools);

/**
 * Refuses tools of the interactions API that Google runs: its replies do not report their calls.
 */
export function checkInteractionTools(tools: unknown): void {
  const use = new FeatureUse({});
  for (const [at, tool] of (Array.isArray(tools) ? tools : [tools]).entries()) {
    if (!isRecord(tool)) continue;
    const [name] = Object.keys(tool);
    // Functions have a type here too. A tool without a type is named as in `generateContent`.
    if (tool["type"] == null && name !== undefined) {
      throw refuseUnknown(`tools[${at}]`, `the tool "${name.slice(0, 64)}"`);
    }
    checkInteractionTool(tool, `tools[${at}]`, use);
  }
}

/**
 * Checks whether replies have audio or images.
 *
 * @param config `generationConfig`
 * @param isImageModel whether the price of the model is for images in any case. Default false
 */
export function checkGeminiConfig(config: unknown, use: FeatureUse, isImageModel = false): void {
  if (!isRecord(config)) return;
  for (const name of ["responseModalities", "response_modalities"]) {
    const words = config[name];
    const isCovered = isImageModel && !use.hasPrice("image_output");
    const checked =
      isCovered && Array.isArray(words) ? words.filter((word) => !isImage(word)) : words;
    checkModalities(checked, name, use);
  }
}

function isImage(word: unknown): boolean {
  return typeof word === "string" && word.toLowerCase() === "image";
}

function checkTool(tool: JsonRecord, use: FeatureUse): void {
  for (const name of ["fileSearch", "file_search", "retrieval"]) {
    if (tool[name] != null) throw refuseStored("tools", "leave it out, and send what is needed");
  }
  for (const [name, value] of Object.entries(tool)) {
    if (value == null || isFunctions(name)) continue;
    const asked = `the tool "${name.slice(0, 64)}"`;
    const [, unit] = geminiTools.billed.find(([pattern]) => pattern.test(name)) ?? [];
    if (unit === undefined) throw refuseUnknown("tools", asked);
    use.useTool(unit, { path: "tools", asked });
  }
}
