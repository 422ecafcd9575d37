/**
 * The shape of a valid configuration: what `uas.yaml` says (vendors, models, prices) and what the
 * environment says (addresses, secrets, folders). load.ts and settings.ts make them.
 */
import type { CancelBilling, ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ConsoleConfig, SmsConfig } from "./sign-in.ts";
import type { StorageConfig } from "./storage.ts";
import type { WebhookConfig } from "./webhooks.ts";

export type {
  AliyunSmsConfig,
  ConsoleConfig,
  HttpSmsConfig,
  SmsConfig,
  TwilioSmsConfig,
} from "./sign-in.ts";
export type { S3StorageConfig, StorageConfig } from "./storage.ts";
export type { WebhookConfig } from "./webhooks.ts";

/** What `uas.yaml` says, checked and resolved. Immutable. */
export interface Config {
  /** Where it was read: a file path, or `built-in demo`. */
  readonly source: string;
  /** Whether this is the built-in demo configuration. */
  readonly isDemo: boolean;
  /** By vendor name. Only vendors that this version can serve. */
  readonly vendors: ReadonlyMap<string, VendorConfig>;
  /** By model key, in the file's order. Only models that this version can serve. */
  readonly models: ReadonlyMap<string, ModelConfig>;
  readonly webhooks: WebhookConfig;
  readonly storage: StorageConfig;
  readonly console: ConsoleConfig;
  /** What sends codes; `undefined`: nothing does. */
  readonly sms: SmsConfig | undefined;
  /** The line of the file that each vendor and model begins in, by its path such as `models.fast-1`. Default: not of
   * a file. */
  readonly lines?: ReadonlyMap<string, number>;
  /** What is accepted but not served: `file:line:col path: message`. */
  readonly warnings: readonly string[];
}

/** A vendor: one upstream company's API, as one installation uses it. */
export interface VendorConfig {
  readonly name: string;
  /** One of the kinds of vendor/index.ts. */
  readonly kind: string;
  /** Without a trailing slash. Empty for kinds without an address (`demo`). */
  readonly baseUrl: string;
  /** The credential, resolved from the environment or a file. Never logged. */
  readonly apiKey: string | undefined;
  /** The only dialects to use, as words such as `chat-completions`, all of them among those that its kind
   * speaks; maybe none. `undefined`: all its kind speaks. */
  readonly dialects: readonly string[] | undefined;
  readonly timeouts: VendorTimeouts;
  /** The most calls in flight at once; `undefined`: no limit. */
  readonly maxInFlight: number | undefined;
  /** How often it is asked, per second, how tasks stand that it has; `undefined`: as its kind allows. */
  readonly pollsPerSecond: number | undefined;
  /** What becomes of a reply whose client has disconnected (R-MON-11): `grace` reads on for `disconnectGraceMs` once
   * content has come, `drain` reads to the end, `abort` stops the vendor at once. */
  readonly onDisconnect: "grace" | "drain" | "abort";
  /** In milliseconds. Default `disconnectGraceMs` of limits.ts. */
  readonly disconnectGraceMs?: number | undefined;
  /** The path prefix of its native interface, with a leading slash; `undefined`: none. */
  readonly nativePrefix: string | undefined;
  /** Kind `fal` only: the address of its synchronous interface. */
  readonly runBaseUrl: string | undefined;
}

/** How long to wait for a vendor, in milliseconds. */
export interface VendorTimeouts {
  /** For the connection. Default 5,000. */
  readonly connectMs: number;
  /** From the request to the reply's head. Default 120,000. */
  readonly firstByteMs: number;
  /** Between two reads of the reply. Default 60,000. */
  readonly idleMs: number;
}

/** A model that customers can call. */
export interface ModelConfig {
  readonly key: string;
  /** The display name; the key where none is given. */
  readonly name: string;
  readonly type: ModelType;
  /** Tried in order; at least one. */
  readonly routes: readonly RouteConfig[];
  /** The most tokens of one reply; what is held where the body sets no limit. 0 where it has none. */
  readonly maxOutputTokens: number;
  /** How many tokens of output a stream holds in advance that may become as long as the model can make it;
   * the hold grows with the stream. At most `maxOutputTokens`. */
  readonly holdOutputTokens: number;
  /** How long a task of it may take from when its vendor is asked first, in milliseconds. Default `taskRunMs`. */
  readonly deadlineMs?: number | undefined;
  /** How long a film or a sound of it is at the least, in seconds, whatever is asked for. Default: not known. */
  readonly minSeconds?: number | undefined;
  /** Whether it reasons before it answers: its replies are read to their end after a disconnect, for what it has
   * reasoned is on the vendor's bill and seen only there. Default false. */
  readonly isReasoning?: boolean;
  /** What a task of it costs that is cancelled. Default NONE. */
  readonly cancelBilling?: CancelBilling | undefined;
  /** Its prices by time, at least one: which of them counts is {@link priceAt}'s to say. */
  readonly prices: readonly DatedPrice[];
}

/** Where a model's calls go. */
export interface RouteConfig {
  /** A vendor's name. */
  readonly vendor: string;
  /** The vendor's own name of the model. */
  readonly model: string;
  /** What its vendor takes of the operator, by time. Absent: not known. */
  readonly costs?: readonly DatedPrice[] | undefined;
}

/** A price and since when it counts: until the next one of its list does. */
export interface DatedPrice {
  /** Milliseconds since 1970; `-Infinity`: always. */
  readonly fromMs: number;
  readonly price: PriceConfig;
}

/** Prices of tokens in nano-USD per 1,000,000. `undefined`: as the one it belongs to, see each. */
export interface TokenPrices {
  /** `undefined`: not charged. */
  readonly input: bigint | undefined;
  /** `undefined`: as `input`. */
  readonly cachedInput: bigint | undefined;
  /** `undefined`: as `input`. */
  readonly cacheWrite: bigint | undefined;
  /** `undefined`: not charged. */
  readonly output: bigint | undefined;
  /** `undefined`: as `output`. */
  readonly reasoning?: bigint | undefined;
}

/** Prices in nano-USD: per 1,000,000 tokens, or per single unit. `undefined`: not charged. */
export interface PriceConfig extends TokenPrices {
  readonly image: bigint | undefined;
  readonly second: bigint | undefined;
  readonly request: bigint | undefined;
  /** What long calls cost instead, by `above`. Absent: whatever the length. */
  readonly tiers?: readonly PriceTier[] | undefined;
}

/** Prices of a whole call that reads many tokens. What it leaves `undefined` is as in its price. */
export interface PriceTier extends TokenPrices {
  /** It counts for calls that read more tokens than this. At least 1. */
  readonly above: number;
}

/** What the environment says. */
export interface Settings {
  /** `UAS_CONFIG`; `undefined`: `uas.yaml` in the working directory, else the built-in demo. */
  readonly configPath: string | undefined;
  /** `UAS_DATA_DIR`, absolute. Default `.data` in the working directory. */
  readonly dataDir: string;
  /** `UAS_LISTEN`. Default 127.0.0.1:8080. */
  readonly listen: ListenAddress;
  /** `UAS_INTERNAL_LISTEN`. Default 127.0.0.1:8081. */
  readonly internalListen: ListenAddress;
  /** `DATABASE_URL`; `undefined`: the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined;
  /** `UAS_PUBLIC_URL`, an origin without a trailing slash; `undefined`: made from `listen`. */
  readonly publicUrl: string | undefined;
  /** `UAS_TRUST_PROXY`: addresses and ranges of proxies whose `x-forwarded-*` count. Default none. */
  readonly trustProxy: readonly string[];
  /** `UAS_MASTER_KEY`: 32 bytes, what the keys of stored secrets are made from. `undefined`: the one of the
   * data folder, see master-key.ts. */
  readonly masterKey: Buffer | undefined;
  /** `UAS_OPERATOR_TOKEN`; `undefined`: operator RPCs are refused. */
  readonly operatorToken: string | undefined;
  /** `UAS_WORKERS`: how many processes serve. Default 1: no supervisor beside it. */
  readonly workers: number;
  /** `UAS_MAX_CONCURRENT_CALLS`: how many calls to models a process runs at once. Default {@link concurrentCallsMax}. */
  readonly maxConcurrentCalls: number;
  /** `UAS_WARM_UP`: whether a server is ready only once the path of a call is compiled. Default true. */
  readonly isWarmedUp: boolean;
}

/** A TCP address to listen on. Port 0: any free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}
