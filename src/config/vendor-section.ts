/** Reads `vendors:` of a configuration. */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig, VendorTimeouts } from "./config.ts";
import { type ServedKind, type ServedKinds, knownDialects, knownKinds } from "./kinds.ts";
import {
  type Entry,
  type Fields,
  type Member,
  type Reader,
  fields,
  items,
  members,
  report,
  required,
  scalarText,
} from "./reader.ts";
import { baseUrl, durationMs, positive, secret, word } from "./values.ts";

/** A vendor as written, as far as it can be read. */
export interface VendorEntry {
  /** What to make it from; absent where this version cannot serve it. */
  readonly config: VendorConfig | undefined;
  /** Why this version cannot serve it; absent where it can. */
  readonly unserved: string | undefined;
  /** What it can produce; `undefined`: not known, as its kind is in error. */
  readonly modelTypes: readonly ModelType[] | undefined;
}

const keys = [
  "kind",
  "base_url",
  "run_base_url",
  "api_key",
  "native_prefix",
  "dialects",
  "timeouts",
  "max_in_flight",
  "polls_per_second",
  "on_disconnect",
] as const;
type VendorFields = Fields<(typeof keys)[number]>;

/** The first path segments that are the gateway's own. */
const reservedPrefixes: ReadonlySet<string> = new Set([
  "/api",
  "/v1",
  "/healthz",
  "/readyz",
  "/metrics",
  "/files",
  "/callbacks",
  "/console",
]);

/** What reading a vendor needs beside the vendor. */
interface VendorContext {
  readonly reader: Reader;
  readonly kinds: ServedKinds;
  /** The native prefixes so far, and whose they are. */
  readonly prefixes: Map<string, string>;
}

/** Reads all vendors, by name. */
export function readVendors(
  reader: Reader,
  section: Entry,
  kinds: ServedKinds,
): ReadonlyMap<string, VendorEntry> {
  const context: VendorContext = { reader, kinds, prefixes: new Map() };
  const vendors = new Map<string, VendorEntry>();
  for (const member of members(reader, section, "vendors by name")) {
    if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(member.key)) {
      const fix = "a vendor's name is 1 to 64 letters, digits, dots, dashes and underscores";
      reader.problems.error(member.keyPlace, section.path, fix);
    }
    vendors.set(member.key, readVendor(context, member));
  }
  return vendors;
}

function readVendor(context: VendorContext, { key: name, value: entry }: Member): VendorEntry {
  const { reader, kinds } = context;
  const given = fields(reader, entry, keys);
  const kindWords = [...new Set([...knownKinds, ...kinds.keys()])];
  const fix = `name one of ${kindWords.join(", ")}`;
  const kindEntry = required(reader, entry, { from: given, name: "kind", fix });
  const kind = kindEntry && word(reader, kindEntry, kindWords);
  const served = kind === undefined ? undefined : kinds.get(kind);
  if (served !== undefined) checkNeeds(reader, entry, { given, kind: kind ?? "", served });
  const dialects = given.dialects && readDialects(reader, given.dialects, served);
  const config = {
    name,
    kind: kind ?? "",
    dialects,
    ...readSettings(context, name, given),
    onDisconnect: readDisconnect(reader, given, served),
  };
  if (kind === undefined) return { config: undefined, unserved: undefined, modelTypes: undefined };
  if (served !== undefined) {
    const isMute = (dialects ?? served.dialects).length === 0;
    const modelTypes = served.modelTypes.filter((type) => !isMute || type !== ModelType.TEXT);
    return { config, unserved: undefined, modelTypes };
  }
  const message = `this version cannot serve kind ${kind} yet: routes to it are not used`;
  reader.problems.warn(entry.place, entry.path, message);
  return { config: undefined, unserved: `kind ${kind}`, modelTypes: [] };
}

function readSettings(
  context: VendorContext,
  name: string,
  given: VendorFields,
): Omit<VendorConfig, "name" | "kind" | "dialects" | "onDisconnect"> {
  const { reader } = context;
  return {
    baseUrl: (given.base_url && baseUrl(reader, given.base_url)) ?? "",
    runBaseUrl: given.run_base_url && baseUrl(reader, given.run_base_url),
    apiKey: given.api_key && secret(reader, given.api_key),
    nativePrefix: given.native_prefix && readPrefix(context, name, given.native_prefix),
    timeouts: readTimeouts(reader, given.timeouts),
    maxInFlight: given.max_in_flight && positive(reader, given.max_in_flight),
    pollsPerSecond: given.polls_per_second && positive(reader, given.polls_per_second),
  };
}

function readDisconnect(
  reader: Reader,
  given: VendorFields,
  served: ServedKind | undefined,
): VendorConfig["onDisconnect"] {
  const said = given.on_disconnect && word(reader, given.on_disconnect, ["abort", "drain"]);
  return (said ?? served?.onDisconnect) === "drain" ? "drain" : "abort";
}

function checkNeeds(
  reader: Reader,
  entry: Entry,
  found: { readonly given: VendorFields; readonly kind: string; readonly served: ServedKind },
): void {
  const { given, kind, served } = found;
  if (served.needsBaseUrl) {
    const fix = "add its address, such as base_url: https://api.example.com/v1";
    required(reader, entry, { from: given, name: "base_url", fix });
  } else if (given.base_url) {
    const { place, path } = given.base_url;
    reader.problems.warn(place, path, `kind ${kind} has no address: it is not used`);
  }
  if (served.needsApiKey) {
    const fix = 'add api_key: "${env:NAME}" and set that environment variable';
    required(reader, entry, { from: given, name: "api_key", fix });
  }
  if (given.native_prefix && served.native === undefined) {
    const { place, path } = given.native_prefix;
    const message = `this version serves no interface of kind ${kind}'s own: it is not used`;
    reader.problems.warn(place, path, message);
  }
  if (given.run_base_url && kind !== "fal") {
    report(reader, given.run_base_url, "only kind fal has it; remove it");
  }
}

/** The dialects of the list that can be spoken; others are named in a warning. */
function readDialects(
  reader: Reader,
  entry: Entry,
  served: ServedKind | undefined,
): readonly string[] {
  const list = items(reader, entry, "dialects");
  const spoken: string[] = [];
  for (const item of list) {
    const dialect = word(reader, item, knownDialects);
    if (dialect === undefined) continue;
    if (spoken.includes(dialect)) report(reader, item, `${dialect} is listed twice; keep one`);
    else if (served === undefined || served.dialects.includes(dialect)) spoken.push(dialect);
    else {
      const can = served.dialects.join(", ") || "none";
      const message = `this version cannot speak ${dialect} with this kind (it can: ${can}): it is not used`;
      reader.problems.warn(item.place, item.path, message);
    }
  }
  if (list.length === 0) report(reader, entry, "name at least one dialect, or leave the key out");
  return spoken;
}

function readPrefix(context: VendorContext, vendor: string, entry: Entry): string | undefined {
  const { reader, prefixes } = context;
  const written = scalarText(reader, entry, "a path such as /gemini");
  if (written === undefined) return undefined;
  const owner = prefixes.get(written);
  if (!/^\/[a-z0-9][a-z0-9-]{0,31}$/.test(written)) {
    const form = "one path segment of lower-case letters, digits and dashes, such as /gemini";
    report(reader, entry, `must be a slash and ${form}`);
  } else if (reservedPrefixes.has(written)) {
    report(reader, entry, `${written} is an address of the gateway itself; choose another`);
  } else if (owner !== undefined) {
    report(reader, entry, `vendor "${owner}" has ${written} already; choose another`);
  } else {
    prefixes.set(written, vendor);
  }
  return written;
}

/** The time limits of a vendor that sets none. */
const timeoutsDefault: VendorTimeouts = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 60_000 };

function readTimeouts(reader: Reader, entry: Entry | undefined): VendorTimeouts {
  if (entry === undefined) return timeoutsDefault;
  const given = fields(reader, entry, ["connect", "first_byte", "idle"]);
  const read = (value: Entry | undefined, otherwise: number): number =>
    (value && durationMs(reader, value)) ?? otherwise;
  return {
    connectMs: read(given.connect, timeoutsDefault.connectMs),
    firstByteMs: read(given.first_byte, timeoutsDefault.firstByteMs),
    idleMs: read(given.idle, timeoutsDefault.idleMs),
  };
}
