/** See {@link Guard}. */
import { guardOf, refuseHigherPrice, refuseStored } from "../guard.ts";
import { isRecord, type JsonRecord, recordsAt } from "../json/value.ts";

const suspects = {
  members: ["serviceTier"],
  nested: ["fileUri", "file_uri", "fileSearch", "file_search", "retrieval"],
};

/** Checks a body of Gemini's, which is always one of ours: callers know its members by other names, but for parts and
 * tools of Gemini's own, which pass whole. */
export const guardGemini = guardOf(suspects, (body, { vendorUrl }) => {
  if (body["serviceTier"] === "priority") {
    throw refuseHigherPrice("service_tier", 'send "auto", "default" or "flex", or leave it out');
  }
  const vendorHost = hostOf(vendorUrl ?? "");
  for (const content of recordsAt(body, "contents")) checkFiles(content["parts"], vendorHost);
  for (const tool of recordsAt(body, "tools")) checkTool(tool);
});

/** Refuses files that the vendor keeps, in parts and in what is below them. */
function checkFiles(value: unknown, vendorHost: string | undefined): void {
  if (Array.isArray(value)) {
    for (const each of value) checkFiles(each, vendorHost);
    return;
  }
  if (!isRecord(value)) return;
  for (const [name, each] of Object.entries(value)) {
    // What tools are called with, and answer, is their own.
    if (name === "functionCall" || name === "response") continue;
    if (!uriNames.has(name)) checkFiles(each, vendorHost);
    else if (!isPublic(each, vendorHost)) {
      throw refuseStored("url", "send the file itself, or a public address");
    }
  }
}

/** Google takes both spellings. */
const uriNames: ReadonlySet<string> = new Set(["fileUri", "file_uri"]);

/** Whether an address, as the URL standard reads it, leads to where everybody may look: no name of a file, no
 * other scheme, no place of the vendor's. */
function isPublic(uri: unknown, vendorHost: string | undefined): boolean {
  if (typeof uri !== "string" || !/^\s*https?:/i.test(uri)) return false;
  const host = hostOf(uri);
  return host !== undefined && host !== vendorHost && !isGoogleHost(host);
}

/** Whether files lie there that were uploaded with the operator's key. @param host without a dot at its end */
export function isGoogleHost(host: string): boolean {
  return ownHost.test(host);
}

const ownHost = /(?:^|[.-])generativelanguage\.(?:[\w-]+\.)*googleapis\.com$/;

/** `undefined`: it is no address. */
function hostOf(address: string): string | undefined {
  return URL.parse(address)?.hostname.replace(/\.$/, "");
}

/** Tools that search in what was stored with the operator's key. */
function checkTool(tool: JsonRecord): void {
  for (const name of ["fileSearch", "file_search", "retrieval"]) {
    if (tool[name] != null) throw refuseStored("tools", "leave it out, and send what is needed");
  }
}
