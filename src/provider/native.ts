/**
 * The interface of native vendor APIs: one table per vendor, which states the routes that exist and
 * what they cost. src/native/ is the one handler for all tables. Everything here is pure;
 * CONTRIBUTING.md explains how to write a table.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig, VendorConfig } from "../config/config.ts";
import type { GatewayError } from "../core/errors.ts";
import type { BilledFeatures } from "../dialect/features/billed-features.ts";
import type { TaskUpdate, TaskUnits } from "./task.ts";

/** The native API of a vendor. */
export interface NativeApi {
  /**
   * The places of a key in requests of the vendor's own clients, checked in this order after the
   * platform's three places (R-AUTH-1).
   */
  readonly keyForms: readonly NativeKeyForm[];
  /**
   * Request headers to forward, in lower case; `x-goog-upload-*` covers all with that prefix. Must
   * not contain credentials.
   */
  readonly requestHeaders: readonly string[];
  /** Response headers to forward, in the same form. */
  readonly responseHeaders: readonly string[];
  /** Response headers that contain a URL of the API. Default: none. */
  readonly urlHeaders?: readonly string[];
  /**
   * JSON members that contain a URL of the API. Only these strings are ever rewritten; the model's
   * texts stay as they are.
   */
  readonly urlMembers: readonly string[];
  /**
   * JSON members with a URL that clients open without a key. It is replaced by a URL of ours that
   * contains a credential. Default: none.
   */
  readonly linkMembers?: readonly string[];
  /** The callback settings of requests, which are never forwarded. Absent if there is none. */
  readonly callback?: NativeCallback;
  /**
   * Returns the names of vendor objects that a request refers to; the caller must own them. Absent
   * if requests refer to none.
   *
   * @throws GatewayError INVALID_REQUEST for objects without an owner
   */
  references?(request: NativeRequest, vendor: VendorConfig): readonly string[];
  /** Its prompt caches. Absent if it has none that requests create. */
  readonly caches?: NativeCaches;
  /**
   * Whether a refusal means that an object no longer exists, in words that otherwise refer to the
   * operator's credential. Default: never.
   */
  isMissingObject?(status: number, body: Buffer): boolean;
  /** An error in the vendor's own form, including the platform's code. */
  errorBody(error: GatewayError, requestId: string): JsonObject;
  /** The routes. The first match counts; without a match the answer is 404. */
  readonly routes: readonly NativeRoute[];
}

/** A place for the key in requests of the vendor's own clients. */
export type NativeKeyForm =
  | { readonly in: "header"; readonly name: string }
  | { readonly in: "query"; readonly name: string }
  /** `Authorization: <scheme> <key>`. */
  | { readonly in: "authorization"; readonly scheme: string };

/** The callback settings in a request. */
export interface NativeCallback {
  /** Body members that are removed. */
  readonly members: readonly string[];
  /** Query parameters that are removed. */
  readonly params: readonly string[];
  /** Reads the settings. @throws GatewayError INVALID_REQUEST */
  read(request: NativeRequest): NativeCallbackRequest;
}

/** The callback that a request sets. */
export interface NativeCallbackRequest {
  /** Absent if there is none. */
  readonly url?: string;
  /** Whether to report progress. Default true. */
  readonly wantsProgress?: boolean;
}

/** A request; its body is parsed on demand. */
export interface NativeRequest {
  /** The named groups of the route's pattern, not decoded. */
  readonly groups: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Length of the body in bytes. */
  readonly bytes: number;
  /** Upper bound of the body's input tokens. */
  readonly inputTokens: number;
  /**
   * Returns the first of these JSON members that is present; undefined if none is, or there is no
   * body.
   *
   * @throws GatewayError INVALID_REQUEST if the body is not a JSON object, or if the member or one
   * of its members is repeated
   */
  member(...names: readonly string[]): JsonValue | undefined;
  /** All string values of members with these names, at any depth; without names, of all members. */
  mentions(...names: readonly string[]): readonly string[];
}

/** A route. */
export type NativeRoute =
  | NativeCallRoute
  | NativeSubmitRoute
  | NativePollRoute
  | NativeCancelRoute
  | NativeListRoute
  | NativeModelsRoute
  | NativeCacheRoute
  | NativeCacheListRoute
  | NativePassRoute;

interface RouteBase {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Pattern for the whole path below the prefix, as sent. */
  readonly path: RegExp;
  /**
   * A further condition: a header or member that distinguishes two routes on one path. Absent if
   * there is none.
   */
  when?(request: NativeRequest): boolean;
  /**
   * The route's place at the vendor: the `name` of an address, and a path. Absent for the first
   * address and the same path.
   */
  target?(this: void, request: NativeRequest): { readonly base: string; readonly path: string };
  /**
   * Headers that are sent regardless of the client's headers, because both sides must interpret the
   * request alike. Default: none besides {@link NativeApi.requestHeaders}.
   */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The place of the model's name, which may be the vendor's or the platform's. */
export type NativeModelAt =
  | {
      readonly in: "path";
      readonly group: string;
      /**
       * The body member by which an app that offers several models selects one. The selected model
       * is configured, and priced, as `<path>/<member>`. Absent if a path is one model.
       */
      readonly selector?: string;
      /**
       * Whether `owner/name` also names a model that is configured as `owner/name:version`. Default
       * false.
       */
      readonly isAnyVersion?: boolean;
    }
  /**
   * The first of the members that is present. `prefix`: optional text before the name, such as
   * `models/`.
   */
  | {
      readonly in: "body";
      readonly members: readonly string[];
      readonly prefix?: string;
      /** Form of names that are versions of a model. Absent if models have no versions. */
      readonly version?: NativeVersionForm;
    };

/** The form of versions of models that are configured without one. */
export interface NativeVersionForm {
  /** Has the groups `owner` (the model's name; optional) and `version`. */
  readonly pattern: RegExp;
  /** The path at the vendor that answers 200 if the model has the version. */
  readonly pathOf: (this: void, model: string, version: string) => string;
}

/**
 * A call with an immediate reply, whole or streamed. It is held, metered and charged like a text
 * generation.
 */
export interface NativeCallRoute extends RouteBase {
  readonly kind: "call";
  readonly model: NativeModelAt;
  /** The model types that this route serves. */
  readonly types: readonly ModelType[];
  /**
   * The most that the call can consume.
   *
   * @param nowMs milliseconds since 1970: units are priced as of then
   * @throws GatewayError INVALID_REQUEST
   */
  limits(request: NativeRequest, model: ModelConfig, nowMs: number): NativeLimits;
  /** The form of the reply: whole, `text/event-stream`, or a growing JSON array. */
  reply(request: NativeRequest): "whole" | "events" | "array";
  /** Creates the meter of a reply. Absent if only input is charged, as for embeddings. */
  meter?(reply: NativeMeterContext): NativeMeter;
  /** Whether input is charged rather than output. Default: true if there is no meter. */
  readonly isInputCharged?: boolean;
  /**
   * Whether the vendor may continue, and bill, after a lost reply. The client's error then says not
   * to retry (R-ERR-5). Default false.
   */
  readonly isJob?: boolean;
  /** The names of objects that a reply or an event reports as created. Absent if there is none. */
  creates?(this: void, json: JsonObject): readonly string[];
}

/** The reply that a meter reads. */
export interface NativeMeterContext {
  readonly request: NativeRequest;
  readonly model: ModelConfig;
  /** Response headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The most that a call can consume. */
export interface NativeLimits {
  /** Tokens per choice; undefined for the model's own limit. */
  readonly maxOutputTokens: number | undefined;
  /** Default 1. */
  readonly choices?: number;
  /** Images per choice. Default 0. */
  readonly images?: number;
  /**
   * Images per choice that can be charged at most, if the vendor bills megapixels and the request
   * leaves the size open. Default: `images`.
   */
  readonly maxImages?: number;
  /** Seconds of video or audio per choice. Default 0. */
  readonly seconds?: number;
  /** Requested features beyond text. Default: none. */
  readonly features?: BilledFeatures | undefined;
}

/** Meters the JSON of a reply: of each event, or of the whole. */
export interface NativeMeter {
  /** Reads the object from `start` to `end`. Must not trust or throw anything. */
  read(bytes: Buffer, start: number, end: number): void;
  /**
   * Skips whole events that match the learned one except for the model's text and numbers; this
   * costs a twentieth of reading them. Absent if every event is read.
   *
   * @param textBytesMax ends before the event with which {@link textBytes} exceeds it
   * @returns the position after the last match; `start` if the next event does not match
   */
  skim?(bytes: Buffer, start: number, textBytesMax: number): number;
  /**
   * Learns the event that was just read, for {@link skim}; the event contains no URL. An event that
   * is read but not learned clears the learned one.
   */
  learn?(bytes: Buffer, event: { readonly start: number; readonly end: number }): void;
  /**
   * Bytes of text that an event would add, if events repeat the text so far. Absent means what
   * another meter counts in it.
   */
  addedTextBytes?(bytes: Buffer, start: number, end: number): number;
  /** Usage reported so far; `undefined` for none. */
  readonly usage: Usage | undefined;
  /** Bytes of text received. */
  readonly textBytes: number;
  /**
   * Of that text, the bytes that came after {@link usage}, which does not count them. Default 0.
   */
  readonly uncountedTextBytes?: number;
  /** Images received. */
  readonly images: number;
  /** Seconds of video or audio received. Default 0. */
  readonly seconds?: number;
  /** Whether the vendor reported completion. */
  readonly isDone: boolean;
  /** Whether the vendor reported a failure within a reply of status 200. Default: it never does. */
  readonly isFailed?: boolean;
  /**
   * The end of a stream whose hold is used up, in the form of the vendor's own end at a token
   * limit.
   */
  stop(usage: Usage | undefined): string;
}

/** Submits a job that continues after the reply. It becomes a task and is charged when it ends. */
export interface NativeSubmitRoute extends RouteBase {
  readonly kind: "submit";
  readonly model: NativeModelAt;
  readonly types: readonly ModelType[];
  /**
   * The requested units: the most that the job can be charged, except for {@link assumedSeconds}.
   * @throws GatewayError INVALID_REQUEST
   */
  units(request: NativeRequest, model: ModelConfig): TaskUnits;
  /**
   * Length of video and audio, from models that ignore the requested length. The hold covers at
   * least this. Default: no model ignores it.
   */
  readonly assumedSeconds?: number;
  readonly task: NativeTask;
}

/** Follows a vendor's jobs. */
export interface NativeTask {
  /** The name of their collection, which distinguishes them from other objects: `predictions`. */
  readonly collection: string;
  /**
   * Returns the vendor's ID of the job, as clients see it; undefined if there is none, so that the
   * job cannot be tracked.
   */
  idOf(json: JsonObject): string | undefined;
  /**
   * The path to poll, below the first address. @param model the vendor's name of the job's model
   */
  path(id: string, model: string): string;
  /** Cancels a job. Absent if not possible. */
  readonly cancel?: {
    readonly method: "POST" | "PUT" | "DELETE";
    path(this: void, id: string, model: string): string;
  };
  /** The vendor's status. @param before the last known status; empty for none */
  statusOf(json: JsonObject, before: string): string;
  /** The HTTP status of a poll reply. Default: always 200. */
  httpStatusOf?(json: JsonObject): number;
  /**
   * Reads the state of a job. @param headersFor the headers required for a file @param requested
   * the requested units; absent means only the status is of interest @throws VendorReplyError if
   * the reply is none
   */
  readUpdate(json: JsonObject, headersFor: NativeHeadersFor, requested?: TaskUnits): TaskUpdate;
  /** The names of objects that a job created. Absent if there is none. */
  creates?(this: void, json: JsonObject): readonly string[];
  /**
   * The result, for vendors that keep it apart from the state. It is read after the job has ended.
   * Absent if the state contains it.
   */
  readonly result?: {
    path(this: void, id: string, model: string): string;
    /** @throws VendorReplyError if the result is not available yet */
    readUpdate(this: void, result: NativeResult): TaskUpdate;
  };
  /** Retention at the vendor. A job that has not ended by then counts as lost. */
  readonly retentionMs: number;
  /** Maximum age of a reported state for clients. Default `nativeRefreshMs`. */
  readonly refreshMs?: number;
}

/** The vendor's reply to a request for a result. */
export interface NativeResult {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The requested units. */
  readonly requested: TaskUnits;
  /** The vendor's last status of the job. */
  readonly before: string;
}

/** The headers required for a URL of the vendor's files. */
export type NativeHeadersFor = (url: string) => Readonly<Record<string, string>>;

/** Polls a job. The answer comes from the stored state, which is recent. */
export interface NativePollRoute extends RouteBase {
  readonly kind: "poll";
  /** The job's id. */
  id(request: NativeRequest): string;
  readonly task: NativeTask;
  /**
   * A path that is always requested from the vendor, for data that is not stored: a result, or an
   * event stream. Absent for the stored state.
   */
  livePath?(this: void, id: string, model: string): string;
  /**
   * Reply while the job of a live path runs, without a request to the vendor. Default: the vendor
   * is polled.
   */
  readonly pending?: { readonly status: number; readonly json: JsonObject };
}

/** Cancels a job. */
export interface NativeCancelRoute extends RouteBase {
  readonly kind: "cancel";
  id(request: NativeRequest): string;
  readonly task: NativeTask;
}

/**
 * Lists the caller's own jobs, newest first. Never the vendor's list, which contains all customers'
 * jobs.
 */
export interface NativeListRoute extends RouteBase {
  readonly kind: "list";
  readonly task: NativeTask;
  /** Largest page. */
  readonly pageSize: number;
  /** The query parameter that continues a list. */
  readonly cursor: string;
  /**
   * A page as JSON text.
   *
   * @param jobs the vendor's last state of each job, as JSON texts
   * @param pages the URLs of the pages before and after it with their cursors; undefined at the
   * ends
   */
  body(jobs: readonly string[], pages: NativePages): string;
  /** A job whose last state is too long to keep, in brief. */
  brief(job: NativeBriefJob): JsonObject;
}

/** The neighbours of a page of a list. */
export interface NativePages {
  readonly previous: string | undefined;
  readonly next: string | undefined;
}

/** Facts about a job without its last state. */
export interface NativeBriefJob {
  /** The vendor's id. */
  readonly id: string;
  /** The vendor's status word. */
  readonly status: string;
  /** The vendor's name of its model; empty if unknown. */
  readonly model: string;
  /** The vendor's base address. */
  readonly baseUrl: string;
}

/**
 * Lists the models that the caller may use. Never the vendor's list: most of its models have no
 * price here.
 */
export interface NativeModelsRoute extends RouteBase {
  readonly kind: "models";
  /** The list as JSON text. */
  body(models: readonly NativeListedModel[]): string;
}

/** A model in a list of the vendor's own form. */
export interface NativeListedModel {
  /** The vendor's name; the gateway's if the vendor's leads to another model. */
  readonly name: string;
  readonly model: ModelConfig;
}

/**
 * Prompt caches at the vendor, which bills their tokens when they are created, and their storage by
 * tokens and time.
 */
export interface NativeCaches {
  /** The model types that have them. */
  readonly types: readonly ModelType[];
  /**
   * Returns the features that a request creates, beyond text. Undefined if there are none.
   *
   * @param nowMs milliseconds since 1970: the prices of that time apply
   * @throws GatewayError INVALID_REQUEST for features that the vendor bills later, in calls that
   * use the cache
   */
  featuresOf(request: NativeRequest, model: ModelConfig, nowMs: number): BilledFeatures | undefined;
  /**
   * When the cache is to expire.
   *
   * @param isNew whether the request creates it, so that the vendor's default applies
   * @throws GatewayError INVALID_REQUEST
   */
  lifeOf(request: NativeRequest, isNew: boolean): NativeCacheLife;
  /** The name of a cache that the vendor describes; undefined means it describes none. */
  nameOf(json: JsonObject): string | undefined;
  /** The figures of a description; `undefined` if it lacks one. */
  figuresOf(json: JsonObject): NativeCacheFigures | undefined;
  /** The path of a cache, to delete it. */
  path(name: string): string;
}

/**
 * When a cache is to expire: after a time, or at a moment. In milliseconds; the moment since 1970.
 */
export type NativeCacheLife = { readonly ttlMs: number } | { readonly expireMs: number };

/**
 * A cache as the vendor describes it. Times are in milliseconds since 1970, by the vendor's clock.
 */
export interface NativeCacheFigures {
  readonly tokens: number;
  readonly createMs: number;
  readonly expireMs: number;
}

/**
 * Creates a prompt cache, or changes when it expires. Charged for its tokens, and for the storage
 * that is added.
 */
export interface NativeCacheRoute extends RouteBase {
  readonly kind: "cache";
  /**
   * The place of the model's name in a request that creates a cache. Absent if the cache exists.
   */
  readonly model?: NativeModelAt;
  /**
   * The name of the cache that exists, which the caller must own. Absent for the request creates
   * it.
   */
  ownedName?(request: NativeRequest): string;
}

/**
 * Lists the caller's own prompt caches. Never the vendor's list, which contains all customers'
 * caches.
 */
export interface NativeCacheListRoute extends RouteBase {
  readonly kind: "cacheList";
  /**
   * Reads the page.
   *
   * @returns `after`: the name of the last cache of the page before; undefined for the first page
   * @throws GatewayError INVALID_REQUEST
   */
  page(request: NativeRequest): { readonly limit: number; readonly after: string | undefined };
  /**
   * A page as JSON text.
   *
   * @param caches the vendor's last description of each cache, as JSON texts
   * @param last the name of the last cache; `undefined` on the last page
   */
  body(caches: readonly string[], last: string | undefined): string;
}

/** A free route, relayed unchanged. */
export interface NativePassRoute extends RouteBase {
  readonly kind: "pass";
  /**
   * Whether an error reply concerns the caller's own job, so that it is relayed unless it is about
   * the operator's account. Default false.
   */
  readonly isJobFailure?: boolean;
  /**
   * The place of a model's name, which the caller must be allowed to use. Absent if there is none.
   */
  readonly model?: NativeModelAt;
  /** The name of the requested object, which the caller must own. Absent if there is none. */
  ownedName?(request: NativeRequest): string;
  /**
   * Whether success deletes the requested object, so that its owner is forgotten. Default false.
   */
  readonly isRemoval?: boolean;
  /** Whether the request leaves a file, or a part of one, at the vendor. Default false. */
  readonly isUpload?: boolean;
  /**
   * The names of objects that a reply reports as created, in its JSON or a header. Absent if there
   * is none.
   */
  creates?(this: void, reply: NativePassReply): readonly string[];
  /**
   * Hosts that a reply may redirect to, once and without credentials, besides the vendor's own.
   * Absent if a redirect is a failure.
   */
  readonly follows?: readonly RegExp[];
}

/** A reply that may report created objects. */
export interface NativePassReply {
  readonly headers: Readonly<Record<string, string>>;
  /** `undefined` if the body is no JSON object. */
  readonly json: JsonObject | undefined;
}
