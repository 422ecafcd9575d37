/**
 * The types of a valid configuration: of `uas.yaml` (vendors, models, prices) and of the
 * environment (addresses, secrets, folders). load.ts and settings.ts create them.
 *
 * Sections whose values are used as written have the type of their schema. Vendors, models and
 * prices are described here: their schema is only a step, since names, defaults and what this
 * version serves are added to them.
 */
import type { ServiceTier } from "../core/service-tiers.ts";
import type { RateLimits } from "../core/rate-limits.ts";
import type { TokenUnitKey, UnitKey } from "./price-units.ts";
import type { ListenAddress } from "./address.ts";
import type { CancelBilling, ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorQuirks } from "../core/vendor-quirks.ts";
import type { RetentionConfig } from "./retention.ts";
import type { ConsoleConfig, SmsConfig } from "./sign-in.ts";
import type { AlertsConfig } from "./alerts.ts";
import type { CorsConfig } from "./cors.ts";
import type { StorageConfig } from "./storage.ts";
import type { SmtpConfig } from "./smtp.ts";
import type { WebhookConfig } from "./webhooks.ts";

export type {
  AliyunSmsConfig,
  ConsoleConfig,
  HttpSmsConfig,
  SmsConfig,
  TwilioSmsConfig,
} from "./sign-in.ts";
export type { S3StorageConfig, StorageConfig } from "./storage.ts";
export type { RateLimits } from "../core/rate-limits.ts";
export type { WebhookConfig } from "./webhooks.ts";

/** The content of `uas.yaml`, checked and resolved. Immutable. */
export interface Config {
  /** The file it was read from, or `built-in demo`. */
  readonly source: string;
  /** The text of the document, without the values of its references. */
  readonly document: string;
  /** Identifies the text: the first 12 hexadecimal digits of its SHA-256. */
  readonly hash: string;
  /** The number of the revision that was applied; undefined if it is read from a file. */
  readonly revision?: string | undefined;
  /** Whether this is the built-in demo configuration. */
  readonly isDemo: boolean;
  /** By vendor name. Only vendors that this version can serve. */
  readonly vendors: ReadonlyMap<string, VendorConfig>;
  /** By model key, in the file's order. Only models that this version can serve. */
  readonly models: ReadonlyMap<string, ModelConfig>;
  /** The names of the price lists that accounts can have. Absent: none. */
  readonly priceLists?: ReadonlySet<string> | undefined;
  /** Absent if no page of another origin may call. */
  readonly cors?: CorsConfig | undefined;
  /** Absent if everything is kept. */
  readonly retention?: RetentionConfig | undefined;
  readonly webhooks: WebhookConfig;
  readonly storage: StorageConfig;
  readonly limits: LimitDefaults;
  readonly console: ConsoleConfig;
  /** The provider of one-time codes; undefined if there is none. */
  readonly sms: SmsConfig | undefined;
  /** The mail server that sends alerts; undefined if no e-mail is sent. */
  readonly smtp: SmtpConfig | undefined;
  /** The addresses that are alerted when the installation needs its operator; undefined if none. */
  readonly alerts?: AlertsConfig | undefined;
  /**
   * The file and line where each vendor and model begins, such as `uas.yaml:7`, by its path such as
   * `models.fast-1`. Absent where the configuration does not come from a file.
   */
  readonly places?: ReadonlyMap<string, string> | undefined;
  /** The included files, absolute. Default: none. */
  readonly included?: readonly string[] | undefined;
  /** Settings without effect in this version: `file:line:col path: message`. */
  readonly warnings: readonly string[];
}

/** A vendor: an upstream API with the credential and limits of this installation. */
export interface VendorConfig {
  readonly name: string;
  /** One of the kinds in provider/index.ts. */
  readonly kind: string;
  /** Without a trailing slash. Empty for kinds without an address (`demo`). */
  readonly baseUrl: string;
  /** The first credential, resolved from the environment or a file. Never logged. */
  readonly apiKey: string | undefined;
  /** All credentials, in the file's order; calls choose among them. Absent: `apiKey` alone. */
  readonly credentials?: readonly CredentialConfig[] | undefined;
  /** Absent: `breakerDefault`. */
  readonly breaker?: BreakerConfig | undefined;
  /**
   * The only dialects to use, as words such as `chat-completions`, each one that its kind speaks;
   * may be empty. Undefined for all that its kind speaks.
   */
  readonly dialects: readonly string[] | undefined;
  readonly timeouts: VendorTimeouts;
  /** Maximum number of concurrent calls; undefined for no limit. */
  readonly maxInFlight: number | undefined;
  /** Maximum number of status polls of tasks per second; undefined for the limit of its kind. */
  readonly pollsPerSecond: number | undefined;
  /**
   * Handling of a reply whose client disconnected (R-MON-11): `grace` reads on for
   * `disconnectGraceMs` once content has arrived. `drain` reads to the end, `abort` stops the
   * vendor at once.
   */
  readonly onDisconnect: "grace" | "drain" | "abort";
  /** In milliseconds. Default `disconnectGraceMs` of limits.ts. */
  readonly disconnectGraceMs?: number | undefined;
  /** The path prefix of its native interface, with a leading slash; undefined if there is none. */
  readonly nativePrefix: string | undefined;
  /**
   * Kind `openai-compatible` only: how requests for rerank are sent. Absent in the form of vLLM.
   */
  readonly rerankForm?: "texts" | undefined;
  /** Kind `fal` only: the address of its synchronous interface. */
  readonly runBaseUrl: string | undefined;
  /**
   * Kind `gemini` only: the buckets of Google Cloud Storage that all customers may name. Absent if
   * there is none.
   */
  readonly fileBuckets?: readonly string[] | undefined;
  /** Handling of requests with betas unknown to the gateway. Default: refused. */
  readonly unknownBetas?: "refuse" | "pass" | undefined;
}

/** One of a vendor's credentials. */
export interface CredentialConfig {
  /** The name of its variable or file, for metrics, logs and lists. Unique within the vendor. */
  readonly name: string;
  /** Never logged. */
  readonly apiKey: string;
  /**
   * Its share of calls among credentials of the same priority. Default 1. 0: only if no other can
   * take the call.
   */
  readonly weight: number;
  /** Lower numbers are used first. Default 0. */
  readonly priority: number;
  /** The vendor's limits of this credential. Absent if there is none. */
  readonly limits?: RateLimits | undefined;
}

/** Free daily uploads (UTC) of an account to vendors. */
export interface UploadLimits {
  /** Default 1,000. */
  readonly objectsPerDay: number;
  /** Default 2 GiB. */
  readonly bytesPerDay: number;
}

/** Default limits of keys and accounts, and of every model. Absent if there are none. */
export interface LimitDefaults {
  readonly key?: RateLimits | undefined;
  readonly account?: RateLimits | undefined;
  readonly model?: RateLimits | undefined;
  /**
   * Maximum time that a call waits for a free slot of its limits. Default 0: it is refused at once.
   */
  readonly waitMs?: number | undefined;
  /** Upload limits of an account at vendors. Default {@link UploadLimits}. */
  readonly uploads?: UploadLimits | undefined;
}

/** When calls stop going to a route or credential that fails, and for how long. */
export interface BreakerConfig {
  /** Failures in a row within the window that open it. Default 5. */
  readonly failures: number;
  /** In milliseconds. Default 30,000. */
  readonly windowMs: number;
  /** The first pause before a probe; it doubles with each failed probe. Default 10,000. */
  readonly cooldownMs: number;
  /**
   * Handling of calls whose only route has an open breaker: `try` it all the same (default), or
   * `refuse` at once.
   */
  readonly singleRoute: "try" | "refuse";
}

/** Retry limits of a call. */
export interface RetryConfig {
  /** Attempts of a call, the first included. Default 3. */
  readonly attempts: number;
  /** Time after the first failure in which further attempts may begin. Default 20,000. */
  readonly withinMs: number;
}

/** Timeouts of a vendor, in milliseconds. */
export interface VendorTimeouts {
  /** Until the connection is established. Default 5,000. */
  readonly connectMs: number;
  /** From the request to the head of the reply. Default 120,000. */
  readonly firstByteMs: number;
  /**
   * From the request to the first content of a stream. `undefined`: {@link ModelConfig} decides,
   * see `firstContentMs` of limits.ts.
   */
  readonly firstContentMs?: number | undefined;
  /**
   * Between two reads of the reply that bring content: white space and comments do not count.
   * Default 60,000.
   */
  readonly idleMs: number;
  /** From the request to the end of the reply. Default 3,600,000 in a configuration, else none. */
  readonly totalMs?: number | undefined;
}

/** A model that customers can call. */
export interface ModelConfig {
  readonly key: string;
  /** The display name; the key if none is given. */
  readonly name: string;
  readonly type: ModelType;
  /**
   * In the file's order; at least one. Where none has a weight or priority they are used in this
   * order.
   */
  readonly routes: readonly RouteConfig[];
  /** Default: {@link RetryConfig}. */
  readonly retry?: RetryConfig | undefined;
  /** Models that take the call when all routes fail, in order. Default: none. */
  readonly fallbackModels?: readonly string[] | undefined;
  /**
   * Maximum output tokens of one reply, which the hold covers if the body sets no limit. 0: not a
   * text model.
   */
  readonly maxOutputTokens: number;
  /**
   * Output tokens that the first hold of a stream without a limit covers; the hold grows with the
   * stream. At most `maxOutputTokens`.
   */
  readonly holdOutputTokens: number;
  /** Maximum duration of a task since its vendor was first asked. Default `taskRunMs`. */
  readonly deadlineMs?: number | undefined;
  /**
   * Minimum length of a video or audio result in seconds, whatever was requested. Undefined if
   * unknown.
   */
  readonly minSeconds?: number | undefined;
  /**
   * Whether it reasons before it answers: its replies are read to their end after a disconnect,
   * because only the end reports the reasoning that the vendor charges. Default false.
   */
  readonly isReasoning?: boolean;
  /**
   * The most calls of a tool that a vendor runs, if a request sets no limit. Default
   * `toolCallsDefault`.
   */
  readonly maxToolCalls?: number | undefined;
  /**
   * Vendor file stores of its routes that all callers of the model may search. Absent if there are
   * none.
   */
  readonly fileStores?: readonly string[] | undefined;
  /** The billing of cancelled tasks. Default NONE. */
  readonly cancelBilling?: CancelBilling | undefined;
  /** Its prices by time, at least one. `priceAt` selects the current one. */
  readonly prices: readonly DatedPrice[];
  /** Its prices for accounts with a price list, by the name of the list. Absent: there is none. */
  readonly listPrices?: ReadonlyMap<string, readonly DatedPrice[]> | undefined;
}

/** A vendor and its model that calls of a model can go to. */
export interface RouteConfig {
  /** A vendor's name. */
  readonly vendor: string;
  /** The vendor's name of the model. */
  readonly model: string;
  /**
   * The member of chat completions that limits a reply there (R-TXT-11). Absent for the one that
   * the client sent.
   */
  readonly limitParameter?: "max_tokens" | "max_completion_tokens" | undefined;
  /** The quirks of its vendor. Absent if there is none. */
  readonly quirks?: VendorQuirks | undefined;
  /**
   * Its share of calls among routes of the same priority. Default 1. 0: only if no other can take
   * the call.
   */
  readonly weight?: number | undefined;
  /** Lower numbers are used first. Default 0. */
  readonly priority?: number | undefined;
  /** The longest request that it takes, with its reply, in tokens. Default: any. */
  readonly maxContext?: number | undefined;
  /** The prices that the vendor charges the operator, by time. Absent if unknown. */
  readonly costs?: readonly DatedPrice[] | undefined;
}

/** A price and the time from which it applies, until the next one of its list does. */
export interface DatedPrice {
  /** Milliseconds since 1970; `-Infinity`: always. */
  readonly fromMs: number;
  readonly price: PriceConfig;
}

/** Prices of tokens in nano-USD per 1,000,000. */
export type TokenPrices = { readonly [Key in TokenUnitKey]?: bigint | undefined };

/**
 * Prices in nano-USD, each for the quantity in its row of price-units.ts. A unit without a price is
 * not charged.
 */
export type UnitPrices = { readonly [Key in UnitKey]?: bigint | undefined };

/** The price of a model. */
export interface PriceConfig extends UnitPrices {
  /** Prices of long calls, by `above`. Absent means one price for every length. */
  readonly tiers?: readonly PriceTier[] | undefined;
  /** Prices of the vendor's service tiers. Absent means one price for all of them. */
  readonly serviceTiers?: { readonly [Tier in ServiceTier]?: PriceConfig | undefined } | undefined;
  /** The tier that this price is of. Absent for the usual one. */
  readonly serviceTier?: ServiceTier | undefined;
  /**
   * Prices of images by size and quality; `image` is then the highest of them. Absent means one
   * price for every image.
   */
  readonly images?: readonly ImagePrice[] | undefined;
}

/** The price of images of one size and quality. The first that fits an image counts. */
export interface ImagePrice extends ImageForm {
  /** Nano-USD per image. */
  readonly image: bigint;
}

/** Properties that decide the price of an image, in the vendor's lower-case words. */
export interface ImageForm {
  /** Such as `1024x1024` or `2k`. Absent for any; of a request, what the vendor chooses. */
  readonly size?: string | undefined;
  /** Such as `high`. Absent as above. */
  readonly quality?: string | undefined;
}

/**
 * Prices of a whole call with many input tokens. If one is `undefined`, the model's price applies.
 */
export interface PriceTier extends TokenPrices {
  /** Applies to calls with more input tokens than this. At least 1. */
  readonly above: number;
}

/** The settings of the environment. */
export interface Settings {
  /** `UAS_CONFIG`; `undefined`: `uas.yaml` in the working directory, else the built-in demo. */
  readonly configPath: string | undefined;
  /** `UAS_DATA_DIR`, absolute. Default `.data` in the working directory. */
  readonly dataDir: string;
  /** `UAS_LISTEN`. Default 127.0.0.1:8080. */
  readonly listen: ListenAddress;
  /** `UAS_INTERNAL_LISTEN`. Default 127.0.0.1:8081. */
  readonly internalListen: ListenAddress;
  /** `DATABASE_URL`; undefined for the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined;
  /**
   * `UAS_PUBLIC_URL`, an origin without a trailing slash; undefined means derived from `listen`.
   */
  readonly publicUrl: string | undefined;
  /**
   * `UAS_CONSOLE_URL`, an origin with another host name than `publicUrl`; undefined if the console
   * is on every host.
   */
  readonly consoleUrl: string | undefined;
  /**
   * `UAS_TRUST_PROXY`: addresses and ranges of proxies whose `x-forwarded-*` count. Default none.
   */
  readonly trustProxy: readonly string[];
  /**
   * `UAS_MASTER_KEY`: 32 bytes, from which the keys of stored secrets derive. Undefined means the
   * key file of the data folder, see master-key.ts.
   */
  readonly masterKey: Buffer | undefined;
  /** `UAS_OPERATOR_TOKEN`; undefined means operator RPCs are refused. */
  readonly operatorToken: string | undefined;
  /** `UAS_WORKERS`: number of serving processes. Default 1: without a supervisor. */
  readonly workers: number;
  /**
   * `UAS_MAX_CONCURRENT_CALLS`: maximum number of concurrent calls to models per process. Default
   * `concurrentCallsMax`.
   */
  readonly maxConcurrentCalls: number;
  /** `UAS_WATCH_CONFIG`: whether a changed configuration file is loaded at once. Default false. */
  readonly watchesConfig: boolean;
  /**
   * `UAS_DRAIN_DELAY`: how long a process serves after SIGTERM while `/readyz` answers 503. Default
   * `drainDelayMsDefault`.
   */
  readonly drainDelayMs: number;
}
