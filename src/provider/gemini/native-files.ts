/**
 * Only Gemini: its own interface has files, which are uploaded in two steps, read, and used as
 * input.
 */
import { invalid } from "../../core/validation.ts";
import type { VendorConfig } from "../../config/config.ts";
import type { FeatureUse } from "../../dialect/features/billed-features.ts";
import { checkBucket, isGoogleHost, isInBucket } from "../../dialect/gemini/guard.ts";
import { decodeUri } from "../../wire/json/escapes.ts";
import type { NativePassReply, NativeRequest, NativeRoute } from "../native.ts";

const fileForm = "(?<id>[a-z0-9-]{1,100})";

const fileOf = ({ groups }: NativeRequest): string => `files/${groups["id"] ?? ""}`;

/** The second upload step names the upload that the first one created. */
function uploadOf({ query }: NativeRequest): string {
  const [id = "", ...others] = query.getAll("upload_id");
  if (others.length === 0) return `uploads/${id}`;
  throw invalid("upload_id", '"upload_id" occurs twice in the query; send it once');
}

const isSecondStep = ({ query }: NativeRequest): boolean => query.has("upload_id");

/** The names created by an upload: first an upload id, finally a file. */
function uploaded({ headers, json }: NativePassReply): readonly string[] {
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

/** The routes of files. The list of all files belongs to the operator. */
export const geminiFiles: readonly NativeRoute[] = [
  {
    kind: "pass",
    method: "POST",
    path: uploadPath,
    when: isSecondStep,
    ownedName: uploadOf,
    isUpload: true,
    creates: uploaded,
  },
  {
    kind: "pass",
    method: "PUT",
    path: uploadPath,
    when: isSecondStep,
    ownedName: uploadOf,
    isUpload: true,
    creates: uploaded,
  },
  { kind: "pass", method: "POST", path: uploadPath, isUpload: true, creates: uploaded },
  { kind: "pass", method: "GET", path: filePath, ownedName: fileOf },
  { kind: "pass", method: "DELETE", path: filePath, ownedName: fileOf },
  {
    kind: "pass",
    method: "GET",
    path: new RegExp(`^/v1(?:beta)?/files/${fileForm}:download$`),
    ownedName: fileOf,
    follows: [/\.googleusercontent\.com$/, /(?:^|\.)storage\.googleapis\.com$/],
  },
];

/**
 * Returns the file that a URL refers to; undefined if it is not one of Google's. The URL is parsed
 * as its standard demands, so that no spelling escapes. An unreadable URL that resembles a file
 * reference counts as a file without an owner.
 */
function fileIn(address: string): string | undefined {
  const bare = /^\s*\/?(files\/[a-z0-9-]+)\s*$/i.exec(address)?.[1];
  if (bare !== undefined) return bare;
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return /files\//i.test(decodeUri(address)) ? address : undefined;
  }
  const path = decodeUri(url.pathname);
  const isOwn = isGoogleHost(url.hostname.replace(/\.$/, ""));
  const [, name] = (isOwn ? /\/+(files\/[^/:]+)/i : /\/v1\w*\/+(files\/[^/:]+)/i).exec(path) ?? [];
  return name;
}

/**
 * Query parameters allowed on reads and charged requests. Others of Google's make a reply omit its
 * usage or change its form: `callback`, `fields`, `alt=proto`.
 */
const params: ReadonlySet<string> = new Set([
  "alt",
  "$alt",
  "prettyPrint",
  "$prettyPrint",
  "quotaUser",
  "updateMask",
  "key",
  "api-key",
]);

/** @throws GatewayError INVALID_REQUEST */
function checkQuery({ query }: NativeRequest): void {
  const other = [...query.keys()].find((name) => !params.has(name));
  if (other !== undefined) throw invalid(other, `"${other}" is no parameter here: leave it out`);
  const alts = [...query.getAll("alt"), ...query.getAll("$alt")];
  const isKnown = alts.every((alt) => alt === "json");
  const isSse = alts.length === 1 && query.get("alt") === "sse";
  if (!isKnown && !isSse) throw invalid("alt", '"alt" must be json or sse, once');
}

/**
 * The names of Google-hosted objects in a request: files, prompt caches, earlier interactions, and
 * objects that cannot be created here.
 */
export function geminiReferences(
  request: NativeRequest,
  { fileBuckets = [] }: Pick<VendorConfig, "fileBuckets">,
): readonly string[] {
  checkQuery(request);
  const cache = request.member("cachedContent", "cached_content") ?? undefined;
  if (cache !== undefined && typeof cache !== "string") {
    throw invalid("cachedContent", '"cachedContent" must be a name such as "cachedContents/abc"');
  }
  const uris = request.mentions("fileUri", "file_uri", "uri");
  for (const uri of uris.filter(isInBucket)) checkBucket("fileUri", uri, fileBuckets);
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

/** Checks whether a part of the request is audio, or a video with a track of audio. */
export function checkAudio(request: NativeRequest, use: FeatureUse): void {
  const types = request.mentions("mimeType", "mime_type");
  if (types.some((type) => /^\s*(?:audio|video)\//i.test(type))) {
    use.use("audio_input", "contents", "audio");
    return;
  }
  // Google reads the type of a file that names none from the file itself.
  const hasUntyped = request.mentions("fileUri", "file_uri").length > types.length;
  if (hasUntyped)
    use.use("audio_input", "contents", 'a file without "mimeType", which may be audio');
}
