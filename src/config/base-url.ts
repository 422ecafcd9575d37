/** Warns of vendors' addresses that requests would miss, and of unencrypted ones. */
import { presets } from "./presets.ts";

/**
 * The warnings about an address. They name the address of a known vendor only: others may contain
 * a secret in their path.
 *
 * @param kind the kind of the vendor
 */
export function addressWarnings(kind: string, baseUrl: string): readonly string[] {
  const url = new URL(baseUrl);
  const isClear = url.protocol === "http:" && isPublicHost(url.hostname);
  const clear =
    "http sends the credential and all content over the internet unencrypted: write https instead";
  return [pathWarning(kind, url), isClear ? clear : undefined].filter(
    (warning) => warning !== undefined,
  );
}

/** The last segments of vendors' paths for requests, which the gateway adds itself. */
const requestPath =
  /\/(chat\/completions|completions|responses|embeddings|messages|rerank|images\/generations|audio\/speech|models(\/[^/]+:\w+)?)$/;

const doubledVersion = /(\/v\d\w*)\1$/;

function pathWarning(kind: string, url: URL): string | undefined {
  const path = url.pathname.replace(/\/+$/, "");
  const known = knownAddress(kind, url.hostname);
  if (known !== undefined && !isKnownPath(kind, path, known)) {
    return `is not the address of this vendor's API: write ${known}`;
  }
  const added = requestPath.exec(path)?.[0];
  if (added !== undefined) return `the gateway adds ${added} itself: remove it`;
  const version = doubledVersion.exec(path)?.[1];
  return version === undefined ? undefined : `${version} is written twice: remove one of them`;
}

/** The documented address of a hosted vendor. Undefined if the host is not known. */
function knownAddress(kind: string, host: string): string | undefined {
  const known = [...presets.values()].find(
    (preset) =>
      preset.needsApiKey &&
      (preset.kind === kind || (isOpenai(preset.kind) && isOpenai(kind))) &&
      URL.parse(preset.baseUrl)?.hostname === host,
  );
  return known?.baseUrl;
}

function isOpenai(kind: string): boolean {
  return kind === "openai" || kind === "openai-compatible";
}

/** The paths that a kind accepts at its vendor: it adds the version if the address lacks it. */
const acceptedPaths: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["", "/v1"],
  gemini: ["", "/v1", "/v1beta"],
  cohere: ["", "/v1", "/v2"],
  jina: ["", "/v1"],
  replicate: ["", "/v1"],
  fal: [""],
  dashscope: ["", "/api/v1", "/compatible-mode/v1"],
};

/**
 * Whether a known vendor can answer at a path. Vendors of OpenAI's API have further paths, such as
 * those of betas, so only a path that lacks a part of the documented one is wrong.
 */
function isKnownPath(kind: string, path: string, known: string): boolean {
  const accepted = acceptedPaths[kind];
  if (accepted !== undefined) return accepted.includes(path);
  const documented = new URL(known).pathname.replace(/\/+$/, "");
  const isPart = documented !== path && documented.startsWith(path);
  return !isPart && !requestPath.test(path) && !doubledVersion.test(path);
}

/** Ends of host names that no public name server resolves. */
const privateEnds =
  /(^|\.)(localhost|local|internal|intranet|lan|home|corp|svc|test|invalid|example|home\.arpa)$/;

/** Whether it is a public name. IP addresses are those of the operator's own servers. */
function isPublicHost(host: string): boolean {
  const isAddress = host.startsWith("[") || /^[\d.]+$/.test(host);
  return host.includes(".") && !isAddress && !privateEnds.test(host);
}
