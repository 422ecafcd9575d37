/** `vendors:` of a configuration: the upstream APIs. */
import { z } from "zod";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Parsed } from "./address.ts";
import type { CredentialConfig, VendorConfig, VendorTimeouts } from "./config.ts";
import type { ConfigDocument } from "./document.ts";
import { type ServedKind, type ServedKinds, knownDialects, knownKinds } from "./kinds.ts";
import { addressWarnings } from "./base-url.ts";
import { defaultAddress, type Preset, presets } from "./presets.ts";
import type { VendorQuirks } from "../core/vendor-quirks.ts";
import { mergeQuirks, quirksSchema } from "./quirks.ts";
import type { ReferenceSource } from "./references.ts";
import { totalMs } from "../core/limits.ts";
import { breakerSchema, checkShares, limitsSchema, shareAbout, shareKeys } from "./routing.ts";
import {
  address,
  duration,
  namedSecret,
  positive,
  scalar,
  secretFix,
  word,
  type WrittenSecret,
} from "./scalars.ts";
import {
  absent,
  always,
  choose,
  type Condition,
  list,
  mapsOf,
  named,
  section,
  textAt,
} from "./schema.ts";

/** A vendor as the file has it, by the names of {@link VendorConfig}. */
type WrittenVendor = z.output<ReturnType<typeof vendorSchema>>;

/** A valid vendor, and the part of it that this version can serve. */
export interface VendorEntry {
  /** `undefined` if this version cannot serve its kind. */
  readonly config: VendorConfig | undefined;
  /** The feature that this version cannot serve; undefined if it can serve all. */
  readonly unserved: string | undefined;
  readonly modelTypes: readonly ModelType[];
  /** The default of `limit_parameter` for its routes. */
  readonly limitParameter?: ServedKind["limitParameter"];
  /** For its routes. Absent if there is none. */
  readonly quirks?: VendorQuirks;
}

/** The schema of the section. */
export function vendorsSchema(references: ReferenceSource, kinds: ServedKinds) {
  const words = [...new Set([...knownKinds, ...kinds.keys()])];
  const vendor = choose(
    (input) => JSON.stringify(vendorCase(input)),
    (written) => {
      const { name, presetName, hasCredentials } = JSON.parse(written) as VendorCase;
      const kind = words.find((known) => known === name);
      const served = kinds.get(name);
      const preset = presets.get(presetName);
      return vendorSchema(references, { words, kind, served, preset, hasCredentials });
    },
    vendorCases(words),
  );
  const fix = "add the upstream APIs to use";
  return named(vendor, { what: "vendors by name", fix, checkName }).meta({
    propertyNames: { pattern: vendorName.source },
  });
}

/** The values of a vendor that decide which others it may have. */
interface VendorCase {
  /** The kind: the written one, else the kind of the preset; empty without either. */
  readonly name: string;
  /** Empty if there is none. */
  readonly presetName: string;
  readonly hasCredentials: boolean;
}

/** All cases: without kind, of each kind, and of each preset; each with one or more credentials. */
function vendorCases(words: readonly string[]): (readonly [Condition, string])[] {
  return [false, true].flatMap((hasCredentials) => {
    const none = { hasCredentials, presetName: "" };
    const credentials = hasCredentials;
    return [
      [{ kind: false, preset: false, credentials }, JSON.stringify(caseOf({ name: "", ...none }))],
      ...words.map(
        (kind) =>
          [
            { kind, preset: false, credentials },
            JSON.stringify(caseOf({ ...none, name: kind })),
          ] as const,
      ),
      ...[...presets].map(
        ([preset, { kind }]) =>
          [
            { preset, credentials },
            JSON.stringify(caseOf({ hasCredentials, name: kind, presetName: preset })),
          ] as const,
      ),
    ];
  });
}

/** With its members in one order, since a case is compared as JSON. */
function caseOf({ name, presetName, hasCredentials }: VendorCase): VendorCase {
  return { name, presetName, hasCredentials };
}

function vendorCase(input: unknown): VendorCase {
  const presetName = textAt(input, "preset") ?? "";
  const name = textAt(input, "kind") ?? presets.get(presetName)?.kind ?? "";
  return { name, presetName, hasCredentials: hasKey(input, "credentials") };
}

function hasKey(input: unknown, key: string): boolean {
  return input instanceof Map && input.get(key) != null;
}

const vendorName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

function checkName(name: string): string | undefined {
  if (vendorName.test(name)) return undefined;
  return "not a vendor name: use 1 to 64 letters, digits, dots, dashes and underscores";
}

/** @param kind `undefined`: missing or not known; then nothing that depends on it is checked */
function vendorSchema(
  references: ReferenceSource,
  {
    words,
    kind,
    served,
    preset,
    hasCredentials,
  }: {
    readonly words: readonly string[];
    readonly kind: string | undefined;
    readonly served: ServedKind | undefined;
    readonly preset: Preset | undefined;
    readonly hasCredentials: boolean;
  },
) {
  const addressFix =
    kind === "dashscope"
      ? "add base_url: https://dashscope-intl.aliyuncs.com, or https://dashscope.aliyuncs.com for keys of China"
      : "add its address, such as base_url: https://api.example.com/v1";
  const apiKey = namedSecret(references, secretFix("api_key"));
  const baseUrl = address(references, addressFix);
  const known = preset?.baseUrl ?? defaultAddress(kind);
  return section(
    {
      kind:
        preset === undefined
          ? word(words, `name one of ${words.join(", ")}, or a preset`)
          : z
              .enum([preset.kind], {
                error: `the preset already says the kind, ${preset.kind}: remove kind, or remove preset`,
              })
              .default(preset.kind),
      preset: word([...presets.keys()]).optional(),
      base_url: served?.needsBaseUrl === true && known === "" ? baseUrl : baseUrl.default(known),
      run_base_url:
        kind === undefined || kind === "fal"
          ? address(references).optional()
          : absent("only kind fal has it; remove it"),
      file_buckets:
        kind === undefined || kind === "gemini"
          ? list(
              scalar("the name of a bucket", parseBucket).meta(bucketForm),
              "names of buckets",
            ).optional()
          : absent("only kind gemini has it; remove it"),
      api_key: hasCredentials
        ? absent("credentials: lists all credentials; remove api_key")
        : (preset ?? served)?.needsApiKey === true
          ? apiKey
          : apiKey.optional(),
      credentials: credentialsSchema(references).optional(),
      breaker: breakerSchema.optional(),
      native_prefix: scalar("a path such as /gemini", parsePrefix).meta(prefixForm).optional(),
      dialects: list(word(knownDialects), "dialects")
        .min(1, { error: "name at least one dialect, or leave the key out" })
        .superRefine(checkDialects, { when: always })
        .optional(),
      timeouts: timeoutsSchema.default(timeoutsDefault),
      max_in_flight: positive().optional(),
      polls_per_second: positive().optional(),
      on_disconnect: word(["grace", "drain", "abort"]).optional(),
      disconnect_grace: duration().optional(),
      quirks: quirksSchema(kind),
      unknown_betas: word(["refuse", "pass"]).optional(),
    },
    { about: vendorKeys },
  );
}

const vendorKeys = {
  kind: "The API that the vendor speaks: [kinds](uas-yaml.md#kinds-of-vendor). Required without `preset`.",
  preset:
    "A [known vendor](reference/presets.md), instead of `kind` and `base_url`. A `base_url` replaces its address.",
  base_url:
    "http or https address without user, query or fragment. Default: the address of the kind or preset; required if it has none.",
  run_base_url:
    "Kind `fal`: the address of synchronous calls, and of file uploads unless `base_url` is fal's own. Default: `base_url` without `queue.`",
  file_buckets:
    "Kind `gemini`: buckets of Google Cloud Storage whose files requests may name. Google reads them with your credential, for every customer. Default: none.",
  api_key: "The credential, as a [reference](configuration.md#secrets). Required for most kinds.",
  credentials:
    "Several credentials, instead of `api_key`: see [routing](routing.md#which-route-and-credential).",
  breaker:
    "When calls stop going to a vendor that fails: [circuit breakers](routing.md#circuit-breakers).",
  native_prefix:
    "Path of the vendor's [native API](native.md): a slash and one segment, different for each vendor. It is served if a model has a route to the vendor. Default: none.",
  dialects: "The dialects to use. Default: all that the kind speaks.",
  timeouts: "Maximum durations of requests to the vendor.",
  max_in_flight:
    "Maximum number of concurrent calls of one `uas serve`; each of its workers has an equal share. Further calls get 503 `upstream_overloaded`, and token counts are estimated while half of it is in use. Default: no limit.",
  polls_per_second:
    "Maximum number of status polls of running [tasks](tasks.md) per second, of one `uas serve`. Default: 20 for `dashscope`, 50 for `replicate`, else no limit.",
  on_disconnect:
    "Whether the vendor's reply is read on when the client [disconnects](reliability.md#client-disconnects). Default: `drain` for `gemini` and `fal`, else `grace`.",
  disconnect_grace: "How long `grace` reads on. Default: `5s`.",
  quirks:
    "What the vendor refuses: [quirks](uas-yaml.md#quirks). Default: those of its kind and preset.",
  unknown_betas:
    "Whether requests with unknown values of `anthropic-beta` or `openai-beta` are [refused](styles.md#what-is-refused-in-every-style). Default: `refuse`.",
};

function credentialsSchema(references: ReferenceSource) {
  const credential = section(
    {
      api_key: namedSecret(references, secretFix("api_key")),
      ...shareKeys(),
      limits: limitsSchema.optional(),
    },
    { about: credentialKeys },
  );
  return list(credential, "credentials { api_key }")
    .min(1, { error: "name at least one credential" })
    .superRefine(checkCredentials, { when: always })
    .superRefine(checkShares, { when: always });
}

const credentialKeys = {
  ...shareAbout,
  api_key: "The credential, as a [reference](configuration.md#secrets).",
  limits:
    "The vendor's [limits of the credential](routing.md#limits-of-a-credential). Default: none.",
};

/** The values are compared, not only their names: two variables may hold the same credential. */
function checkCredentials(credentials: unknown, context: z.core.$RefinementCtx): void {
  const seen = new Set<string>();
  const names = new Set<string>();
  for (const [index, { apiKey }] of mapsOf(credentials)) {
    if (!isWrittenSecret(apiKey)) continue;
    const { name, value } = apiKey;
    const message = `${name} is listed twice, or has the same value as an earlier credential; keep one`;
    const isTwice = seen.has(value) || names.has(name);
    if (isTwice) context.addIssue({ code: "custom", path: [index], message });
    seen.add(value);
    names.add(name);
  }
}

function isWrittenSecret(value: unknown): value is WrittenSecret {
  return typeof value === "object" && value !== null && "name" in value && "value" in value;
}

/** The time limits of a vendor that sets none. */
const timeoutsDefault: VendorTimeouts = {
  connectMs: 5_000,
  firstByteMs: 120_000,
  idleMs: 60_000,
  totalMs,
};

const timeoutKeys = {
  connect: "Until the connection is established.",
  first_byte:
    "From the request to the head of the reply, and to the first content of a stream. Default: `120s`; `30s` to the first content of a stream, except with `reasoning: true`.",
  idle: "Maximum silence within a reply; keep-alives and white space do not count as content.",
  total: "From the request to the end of the reply; [tasks](tasks.md) have their deadline instead.",
};

const timeoutsSchema = section(
  {
    connect: duration().default(timeoutsDefault.connectMs),
    first_byte: duration().optional(),
    idle: duration().default(timeoutsDefault.idleMs),
    total: duration().default(totalMs),
  },
  { about: timeoutKeys },
).transform(
  ({ connect, firstByte, idle, total }): VendorTimeouts => ({
    connectMs: connect,
    firstByteMs: firstByte ?? timeoutsDefault.firstByteMs,
    idleMs: idle,
    totalMs: total,
    firstContentMs: firstByte,
  }),
);

function checkDialects(dialects: unknown, context: z.core.$RefinementCtx): void {
  const seen = new Set<unknown>();
  for (const [index, dialect] of Array.isArray(dialects) ? dialects.entries() : []) {
    const message = `${String(dialect)} is listed twice; keep one`;
    if (seen.has(dialect)) context.addIssue({ code: "custom", path: [index], message });
    if (knownDialects.includes(String(dialect))) seen.add(dialect);
  }
}

/** The first path segments that the gateway itself uses. */
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

const bucketForm = { title: "name", pattern: "^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$" };

const prefixForm = { title: "path", pattern: "^/[a-z0-9][a-z0-9-]{0,31}$" };

function parseBucket(value: string): Parsed<string> {
  if (/^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/.test(value)) return { value };
  const form = "3 to 222 lower-case letters, digits, dots, dashes and underscores, without gs://";
  return { problem: `must be the name of a bucket: ${form}` };
}

function parsePrefix(value: string): Parsed<string> {
  if (!/^\/[a-z0-9][a-z0-9-]{0,31}$/.test(value)) {
    const form = "one path segment of lower-case letters, digits and dashes, such as /gemini";
    return { problem: `must be a slash and ${form}` };
  }
  if (!reservedPrefixes.has(value)) return { value };
  return { problem: `${value} is a path of the gateway itself; choose another` };
}

/**
 * Reports native prefixes that two vendors have. It reads the tree: a vendor with other errors
 * counts as well.
 */
export function checkPrefixes(document: ConfigDocument, vendors: unknown): void {
  const owners = new Map<string, string>();
  for (const [name, vendor] of vendors instanceof Map ? (vendors as Map<string, unknown>) : []) {
    const prefix = textAt(vendor, "native_prefix");
    if (prefix === undefined || "problem" in parsePrefix(prefix)) continue;
    const owner = owners.get(prefix);
    const message = `vendor "${owner}" already has ${prefix}; choose another`;
    if (owner !== undefined) document.error(["vendors", name, "native_prefix"], message);
    owners.set(prefix, owner ?? name);
  }
}

/**
 * Returns the vendors of a valid file that this version can serve. The others become warnings of
 * the document.
 */
export function servedVendors(
  document: ConfigDocument,
  vendors: ReadonlyMap<string, WrittenVendor>,
  kinds: ServedKinds,
): ReadonlyMap<string, VendorEntry> {
  const entries = [...vendors].map(([name, vendor]): [string, VendorEntry] => {
    const served = kinds.get(vendor.kind);
    if (served !== undefined) return [name, servedVendor(document, name, { vendor, served })];
    const message = `this version cannot serve kind ${vendor.kind} yet: routes to it are not used`;
    document.warn(["vendors", name], message);
    return [name, { config: undefined, unserved: `kind ${vendor.kind}`, modelTypes: [] }];
  });
  return new Map(entries);
}

function servedVendor(
  document: ConfigDocument,
  name: string,
  { vendor, served }: { readonly vendor: WrittenVendor; readonly served: ServedKind },
): VendorEntry {
  const { disconnectGrace, preset: presetName = "", quirks: givenQuirks, ...given } = vendor;
  const preset = presets.get(presetName);
  const limitParameter = preset?.limitParameter ?? served.limitParameter;
  const quirks = mergeQuirks(served.quirks, preset?.quirks, givenQuirks);
  const { kind, baseUrl, nativePrefix } = given;
  if (!served.needsBaseUrl && baseUrl !== "") {
    document.warn(
      ["vendors", name, "base_url"],
      `kind ${kind} has no address: base_url is not used`,
    );
  }
  if (served.needsBaseUrl) {
    for (const warning of addressWarnings(kind, baseUrl)) {
      document.warn(["vendors", name, "base_url"], warning);
    }
  }
  if (nativePrefix !== undefined && served.native === undefined) {
    const message = `this version does not serve the native interface of kind ${kind}: the prefix is not used`;
    document.warn(["vendors", name, "native_prefix"], message);
  }
  const dialects = vendor.dialects?.filter((dialect, index) => {
    const isSpoken = served.dialects.includes(dialect);
    const can = served.dialects.join(", ") || "none";
    const message = `this version does not speak ${dialect} with this kind (it speaks: ${can}): the dialect is not used`;
    if (!isSpoken) document.warn(["vendors", name, "dialects", index], message);
    return isSpoken;
  });
  const credentials = credentialsOf(vendor);
  const isMute = (dialects ?? served.dialects).length === 0;
  // Kinds without a dialect generate text under their native prefix only.
  const isNative = served.dialects.length === 0 && nativePrefix !== undefined;
  const onDisconnect = vendor.onDisconnect ?? served.onDisconnect ?? "grace";
  return {
    config: {
      ...given,
      name,
      dialects,
      onDisconnect,
      disconnectGraceMs: disconnectGrace,
      apiKey: credentials[0]?.apiKey,
      credentials,
      ...(preset?.rerankForm && { rerankForm: preset.rerankForm }),
    },
    unserved: undefined,
    ...(limitParameter !== undefined && { limitParameter }),
    ...(quirks !== undefined && { quirks }),
    modelTypes: served.modelTypes.filter(
      (type) =>
        (!isMute || isNative || type !== ModelType.TEXT) &&
        (preset?.modelTypes.includes(type) ?? true),
    ),
  };
}

function credentialsOf({ apiKey, credentials }: WrittenVendor): readonly CredentialConfig[] {
  const written = credentials ?? (apiKey === undefined ? [] : [{ apiKey }]);
  return written.map((credential) => {
    const { apiKey: secret, weight = 1, priority = 0, limits } = { ...noShare, ...credential };
    return { name: secret.name, apiKey: secret.value, weight, priority, limits };
  });
}

const noShare = { weight: undefined, priority: undefined, limits: undefined };
