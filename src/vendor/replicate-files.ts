/** Files that Replicate keeps for its account, as requests name them. */
import type { JsonValue } from "@bufbuild/protobuf";
import { isRecord } from "../dialect/json.ts";
import { refuseKept } from "../dialect/guard.ts";
import { unescaped } from "../dialect/unescaped.ts";

/** The file that an address names, and where; `undefined`: it names none. */
export function fileIn(text: string): { readonly id: string; readonly host: string } | undefined {
  // As the URL standard reads it, which overlooks control characters: no spelling of an address is overlooked.
  const url = /^[\0- ]*h/i.test(text) ? URL.parse(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  const [, id] = /\/v1\/+files\/+([^/]+)/i.exec(unescaped(url.pathname)) ?? [];
  return id === undefined ? undefined : { id, host: url.hostname };
}

/**
 * Refuses the files of Replicate's account anywhere in the parameters of a task.
 *
 * @param apiHost the host that is asked, beside Replicate's own
 * @throws GatewayError INVALID_REQUEST
 */
export function refuseFiles(value: JsonValue, path: string, apiHost: string): void {
  if (typeof value === "string") {
    const host = fileIn(value)?.host.replace(/\.$/, "");
    if (host !== apiHost && !/(?:^|\.)replicate\.com$/.test(host ?? "")) return;
    throw refuseKept(path, "send the file itself, or a public address");
  }
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) refuseFiles(each, `${path}[${at}]`, apiHost);
  } else if (isRecord(value)) {
    for (const [name, each] of Object.entries(value)) {
      refuseFiles(each, `${path}.${name}`, apiHost);
    }
  }
}
