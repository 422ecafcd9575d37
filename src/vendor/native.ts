/**
 * What a vendor's own interface consists of: one table for each vendor, beside its text and its tasks. The table
 * says what exists and what of it costs money; src/native/ is the one handler that runs all of them. Everything
 * here is pure: docs/native.md tells how to write one.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import type { GatewayError } from "../core/errors.ts";
import type { TaskNews, TaskUnits } from "./task.ts";

/** A vendor's own interface. */
export interface NativeApi {
  /** Where its own clients put their key: looked at after the platform's three places, in this order (R-AUTH-1). */
  readonly keyForms: readonly NativeKeyForm[];
  /** The headers of a request that it gets to see, in lower case; `x-goog-upload-*` stands for all that begin so.
   * No credential may be among them. */
  readonly requestHeaders: readonly string[];
  /** The headers of its reply that customers get to see, in the same form. */
  readonly responseHeaders: readonly string[];
  /** The headers of its reply whose value is an address of its own. Default: none. */
  readonly urlHeaders?: readonly string[];
  /** The members of its JSON whose value is an address of its own: the only strings that are ever rewritten.
   * What a model says is left as it is. */
  readonly urlMembers: readonly string[];
  /** The members whose value is an address that its clients follow without a key: it becomes an address of ours
   * that is a key for itself. Default: none. */
  readonly linkMembers?: readonly string[];
  /** Where clients tell where the vendor should call back: never passed on. Absent: nowhere. */
  readonly callback?: NativeCallback;
  /** The names of its objects that a request refers to: they must be the caller's. Absent: there are none. */
  references?(request: NativeRequest): readonly string[];
  /** A failure in its own form, with the platform's code in it. */
  errorBody(error: GatewayError, requestId: string): JsonObject;
  /** What exists; the first that fits counts, and where none does the answer is 404. */
  readonly routes: readonly NativeRoute[];
}

/** Where a vendor's own clients put their key. */
export type NativeKeyForm =
  | { readonly in: "header"; readonly name: string }
  | { readonly in: "query"; readonly name: string }
  /** `Authorization: <scheme> <key>`. */
  | { readonly in: "authorization"; readonly scheme: string };

/** Where a request says where to call back. */
export interface NativeCallback {
  /** The members of the body that are taken out. */
  readonly members: readonly string[];
  /** The parameters of the query that are taken out. */
  readonly params: readonly string[];
  /** What they say. @throws GatewayError INVALID_REQUEST */
  read(request: NativeRequest): NativeCallbackSaid;
}

/** What is said of a callback. */
export interface NativeCallbackSaid {
  /** Absent: nothing. */
  readonly url?: string;
  /** Whether progress is wanted. Default: it is. */
  readonly wantsProgress?: boolean;
}

/** A request, as far as it has been read. */
export interface NativeRequest {
  /** What the route's pattern has named in the path, nothing decoded. */
  readonly groups: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long the body is, in bytes. */
  readonly bytes: number;
  /** The most tokens that a model reads of the body. */
  readonly inputTokens: number;
  /**
   * A member of the JSON body: the first of the names that is there; `undefined`: none, or there is no body.
   *
   * @throws GatewayError INVALID_REQUEST where the body is no JSON object, or has the member twice, or the member has
   * something twice
   */
  member(...names: readonly string[]): JsonValue | undefined;
  /** The values of all members of these names that are texts, wherever in the body they stand. No name: of all. */
  mentions(...names: readonly string[]): readonly string[];
}

/** One thing that can be asked for. */
export type NativeRoute =
  | NativeCallRoute
  | NativeSubmitRoute
  | NativePollRoute
  | NativeCancelRoute
  | NativeListRoute
  | NativePassRoute;

interface RouteBase {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** The whole path below the prefix, as it was sent. */
  readonly path: RegExp;
  /** What else decides: a header or a member that chooses between two routes of one path. Absent: nothing. */
  when?(request: NativeRequest): boolean;
  /** Where the vendor has it, as `name` of one of its addresses and the path there. Absent: the
   * first address and the same path. */
  target?(this: void, request: NativeRequest): { readonly base: string; readonly path: string };
}

/** Where a request names its model: it may say the vendor's name or the platform's. */
export type NativeModelAt =
  | { readonly in: "path"; readonly group: string }
  /** The first of the members that is there. `prefix`: what may stand before the name, such as `models/`. */
  | { readonly in: "body"; readonly members: readonly string[]; readonly prefix?: string };

/** A call that is answered at once, whole or as a stream: held, metered and charged as a text generation. */
export interface NativeCallRoute extends RouteBase {
  readonly kind: "call";
  readonly model: NativeModelAt;
  /** The types of models that can be asked so. */
  readonly types: readonly ModelType[];
  /** What it can come to. @throws GatewayError INVALID_REQUEST */
  limits(request: NativeRequest, model: ModelConfig): NativeLimits;
  /** How its reply comes: whole, as `text/event-stream`, or as a JSON array that grows. */
  reply(request: NativeRequest): "whole" | "events" | "array";
  /** Reads what a reply costs; a new one for each reply. Absent: what was read is charged, as with embeddings. */
  meter?(reply: NativeMeterContext): NativeMeter;
  /** Whether what was read is charged, and not what was made. Default: where there is no meter. */
  readonly isInputCharged?: boolean;
  /** Whether the vendor may go on with it where no answer came, and bill it: the client is told not to ask again
   * (R-ERR-5). Default false. */
  readonly isJob?: boolean;
  /** The names of objects that a whole reply, or an event, tells were made. Absent: it makes none. */
  creates?(this: void, json: JsonObject): readonly string[];
}

/** A reply that is to be read. */
export interface NativeMeterContext {
  readonly request: NativeRequest;
  readonly model: ModelConfig;
  /** Of the reply, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What a call can come to at the most. */
export interface NativeLimits {
  /** Tokens of one choice; `undefined`: as many as the model makes. */
  readonly maxOutputTokens: number | undefined;
  /** Default 1. */
  readonly choices?: number;
  /** Pictures of each. Default 0. */
  readonly images?: number;
  /** Seconds of film or sound of each. Default 0. */
  readonly seconds?: number;
}

/** Reads the JSON of a reply as it comes: of each event, or of the whole. */
export interface NativeMeter {
  /** Takes the object that lies from `start` to `end`. Trusts nothing, throws nothing. */
  read(bytes: Buffer, start: number, end: number): void;
  /**
   * Takes whole events that are like the one that was learned last, but for what the model says and for numbers: a
   * flood of them costs a twentieth so. Absent: each is read by itself.
   *
   * @returns behind the last of them; `start`: the next is another one
   */
  skim?(bytes: Buffer, start: number): number;
  /** Told of the event that was just read, for {@link skim}: it has no address. One that was read and not learned
   * forgets those before. */
  learn?(bytes: Buffer, event: { readonly start: number; readonly end: number }): void;
  /** What the vendor reported so far; `undefined`: nothing. */
  readonly usage: Usage | undefined;
  /** Bytes of text that came. */
  readonly textBytes: number;
  /** Pictures that came. */
  readonly images: number;
  /** Seconds of film or sound that came. Default 0. */
  readonly seconds?: number;
  /** Whether the vendor said that it is done. */
  readonly isDone: boolean;
  /** Whether the vendor said that it failed, in a stream that began well. Default: it never says. */
  readonly isFailed?: boolean;
  /** What ends a stream whose money is used up, as the vendor ends one at its limit of tokens. */
  stop(usage: Usage | undefined): string;
}

/** A job that goes on after its answer: it becomes a task, which is charged when it ends. */
export interface NativeSubmitRoute extends RouteBase {
  readonly kind: "submit";
  readonly model: NativeModelAt;
  readonly types: readonly ModelType[];
  /** What it asks for: the most that it can be charged for, but for {@link secondsUsual}. @throws GatewayError
   * INVALID_REQUEST */
  units(request: NativeRequest, model: ModelConfig): TaskUnits;
  /** How long films and sounds are of models that overlook what is said of their length, in seconds: held for at least.
   * Default: no model overlooks it. */
  readonly secondsUsual?: number;
  readonly task: NativeTask;
}

/** How a vendor's jobs are followed. */
export interface NativeTask {
  /** Their collection, which tells them from the vendor's other objects: `predictions`. */
  readonly word: string;
  /** The vendor's own id in an answer, as clients see it; `undefined`: it has none, so nothing can be followed. */
  idOf(json: JsonObject): string | undefined;
  /** Where to ask how a job stands: a path below the first address. @param model the vendor's name of its model */
  path(id: string, model: string): string;
  /** How to ask to stop it. Absent: it cannot be stopped. */
  readonly cancel?: {
    readonly method: "POST" | "PUT" | "DELETE";
    path(this: void, id: string, model: string): string;
  };
  /** The vendor's own word of how it stands. @param before the one that is known; empty: none */
  statusOf(json: JsonObject, before: string): string;
  /** The HTTP status of what tells how it stands. Default: always 200. */
  httpStatusOf?(json: JsonObject): number;
  /** How it stands. `headersFor`: what the vendor wants to see with a file. @throws VendorTrouble where it is none */
  newsOf(json: JsonObject, headersFor: NativeHeadersFor): TaskNews;
  /** The names of objects that a job has made. Absent: it makes none. */
  creates?(this: void, json: JsonObject): readonly string[];
  /** Where its result is, of vendors that keep it apart: what it came to is read from it, once it has ended. Absent:
   * it is part of how the job stands. */
  readonly result?: {
    path(this: void, id: string, model: string): string;
    /** @throws VendorTrouble where it is none, and may be one later */
    newsOf(this: void, result: NativeResult): TaskNews;
  };
  /** How long the vendor keeps it, in milliseconds: a job that has not ended by then is given up. */
  readonly keptMs: number;
}

/** What a vendor answered about a job's result. */
export interface NativeResult {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** What was asked for. */
  readonly asked: TaskUnits;
  /** The vendor's word of how the job stood. */
  readonly before: string;
}

/** The headers that a vendor wants to see with one of its files. */
export type NativeHeadersFor = (url: string) => Readonly<Record<string, string>>;

/** How a job stands: answered from what is kept, which is not older than a moment. */
export interface NativePollRoute extends RouteBase {
  readonly kind: "poll";
  /** The job's id. */
  id(request: NativeRequest): string;
  readonly task: NativeTask;
  /** Where the vendor is asked each time, of what is not kept: a result, or a stream of news. Absent: it is kept. */
  livePath?(this: void, id: string, model: string): string;
  /** What is told of a live one while the job runs, without asking the vendor. Default: the vendor is asked. */
  readonly pending?: { readonly status: number; readonly json: JsonObject };
}

/** Asks to stop a job. */
export interface NativeCancelRoute extends RouteBase {
  readonly kind: "cancel";
  id(request: NativeRequest): string;
  readonly task: NativeTask;
}

/** The caller's own jobs, newest first: never the vendor's list, which has those of all customers. */
export interface NativeListRoute extends RouteBase {
  readonly kind: "list";
  readonly task: NativeTask;
  /** The most of one page. */
  readonly pageSize: number;
  /** The parameter of the query that tells where the page goes on. */
  readonly cursor: string;
  /** A page, as JSON text. @param jobs as the vendor said them last, as JSON texts @param next the address of the
   * next page with this cursor; `undefined`: this is the last */
  body(jobs: readonly string[], next: string | undefined): string;
}

/** What costs nothing: passed on as it is. */
export interface NativePassRoute extends RouteBase {
  readonly kind: "pass";
  /** Whether a failure is that of the caller's own job: it passes then as it is, unless it is about the operator's
   * account. Default false. */
  readonly isJobs?: boolean;
  /** Where a model is named: the caller must be allowed to use it. Absent: none is. */
  readonly model?: NativeModelAt;
  /** The object that is asked for: it must be the caller's. Absent: none is. */
  owns?(request: NativeRequest): string;
  /** The names of objects that the answer tells were made, in JSON or in a header. Absent: it makes none. */
  creates?(this: void, reply: NativeMade): readonly string[];
  /** The hosts that a reply may send on to, once and without the credential; the vendor's own is always one of
   * them. Absent: a redirect is a failure. */
  readonly follows?: readonly RegExp[];
}

/** What tells what was made. */
export interface NativeMade {
  readonly headers: Readonly<Record<string, string>>;
  /** `undefined`: the body is no JSON object. */
  readonly json: JsonObject | undefined;
}
