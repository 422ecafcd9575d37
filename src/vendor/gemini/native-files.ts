/** Files of Gemini's own interface: uploaded in two steps, read, used as input. */
import { isGoogleHost } from "../../dialect/gemini/guard.ts";
import { unescaped } from "../../dialect/json/escapes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { NativeMade, NativeRequest, NativeRoute } from "../native.ts";

const fileForm = "(?<id>[a-z0-9-]{1,100})";

const fileOf = ({ groups }: NativeRequest): string => `files/${groups["id"] ?? ""}`;

/** The second step names what the first has given out. */
function uploadOf({ query }: NativeRequest): string {
  const [id = "", ...others] = query.getAll("upload_id");
  if (others.length === 0) return `uploads/${id}`;
  throw invalid('"upload_id" stands twice in the query; send it once', "upload_id");
}

const isSecondStep = ({ query }: NativeRequest): boolean => query.has("upload_id");

/** What an upload makes: at first an address to send to, at last a file. */
function uploaded({ headers, json }: NativeMade): readonly string[] {
  const url = URL.parse(headers["x-goog-upload-url"] ?? "");
  const upload = url?.searchParams.get("upload_id") ?? "";
  const file = json?.["file"];
  const name = typeof file === "object" && file !== null && "name" in file ? file["name"] : "";
  return [
    ...(upload === "" ? [] : [`uploads/${upload}`]),
    ...(typeof name === "string" && name.startsWith("files/") ? [name] : []),
  ];
}

const uploadPath = /^\/upload\/v1(?:beta)?\/files$/;
const filePath = new RegExp(`^/v1(?:beta)?/files/${fileForm}$`);

/** Their routes. The list of all files is the operator's. */
export const geminiFiles: readonly NativeRoute[] = [
  {
    kind: "pass",
    method: "POST",
    path: uploadPath,
    when: isSecondStep,
    owns: uploadOf,
    creates: uploaded,
  },
  {
    kind: "pass",
    method: "PUT",
    path: uploadPath,
    when: isSecondStep,
    owns: uploadOf,
    creates: uploaded,
  },
  { kind: "pass", method: "POST", path: uploadPath, creates: uploaded },
  { kind: "pass", method: "GET", path: filePath, owns: fileOf },
  { kind: "pass", method: "DELETE", path: filePath, owns: fileOf },
  {
    kind: "pass",
    method: "GET",
    path: new RegExp(`^/v1(?:beta)?/files/${fileForm}:download$`),
    owns: fileOf,
    follows: [/\.googleusercontent\.com$/, /(?:^|\.)storage\.googleapis\.com$/],
  },
];

/**
 * The file that an address means; `undefined`: none of Google's own. Read as the URL standard reads it, so that no
 * spelling of it is overlooked; what cannot be read but looks like one is a file that nobody has.
 */
function fileIn(address: string): string | undefined {
  const bare = /^\s*\/?(files\/[a-z0-9-]+)\s*$/i.exec(address)?.[1];
  if (bare !== undefined) return bare;
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return /files\//i.test(unescaped(address)) ? address : undefined;
  }
  const path = unescaped(url.pathname);
  const isOwn = isGoogleHost(url.hostname.replace(/\.$/, ""));
  const [, name] = (isOwn ? /\/+(files\/[^/:]+)/i : /\/v1\w*\/+(files\/[^/:]+)/i).exec(path) ?? [];
  return name;
}

/** What may stand in the query of a request that is read, or charged. Google has others by which a reply comes in
 * another form than JSON, or without what it costs: `callback`, `fields`, `alt=proto`. */
const params: ReadonlySet<string> = new Set([
  "alt",
  "$alt",
  "prettyPrint",
  "$prettyPrint",
  "quotaUser",
  "key",
  "api-key",
]);

/** @throws GatewayError INVALID_REQUEST */
function checkQuery({ query }: NativeRequest): void {
  const other = [...query.keys()].find((name) => !params.has(name));
  if (other !== undefined) throw invalid(`"${other}" is no parameter here: leave it out`, other);
  const alts = [...query.getAll("alt"), ...query.getAll("$alt")];
  const isKnown = alts.every((alt) => alt === "json");
  const isSse = alts.length === 1 && query.get("alt") === "sse";
  if (!isKnown && !isSse) throw invalid('"alt" must be json or sse, once', "alt");
}

function invalid(text: string, param: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param });
}

/** What a request refers to that Google keeps: files, earlier interactions, and what cannot be made here. */
export function geminiReferences(request: NativeRequest): readonly string[] {
  checkQuery(request);
  const tier = request.member("serviceTier", "service_tier");
  if (
    tier !== undefined &&
    tier !== null &&
    !/^(?:auto|default|standard|flex)$/i.test(typeof tier === "string" ? tier : "")
  ) {
    const text = '"serviceTier" asks for a dearer service than the price of the model is for';
    throw invalid(text, "serviceTier");
  }
  const uris = request.mentions("fileUri", "file_uri", "uri");
  const files = uris.flatMap((uri) => fileIn(uri) ?? []);
  const kept = request.mentions(
    "cachedContent",
    "cached_content",
    "fileSearchStoreNames",
    "file_search_store_names",
  );
  const before = request.mentions("previous_interaction_id", "previousInteractionId");
  return [...files, ...kept, ...before.map((id) => `interactions/${id}`)];
}
