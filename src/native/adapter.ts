/**
 * Adapts synchronous native calls to the call pipeline: they are admitted, held and settled like
 * every call.
 */
import { create, type JsonObject } from "@bufbuild/protobuf";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { UsageSchema, UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { emptyBuffer } from "../core/bytes.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { invalid } from "../core/validation.ts";
import type { BilledFeatures } from "../dialect/features/billed-features.ts";
import { rewriteAddresses } from "../wire/json/addresses.ts";
import { EventDataReader } from "../wire/sse/event-stream.ts";
import { asJob } from "../calls/adapters/job-reply.ts";
import { type Delivered, meter, type Metered, meterInput } from "../calls/pipeline/metering.ts";
import {
  type AnsweredBy,
  CallAdapter,
  type CostWriter,
  ReadRequest,
  type Recalled,
  type Repetition,
  repetitionOfBytes,
  type ReplyHead,
  type ReplyStream,
  type RequestSummary,
  type VendorRefusal,
  type WholeReply,
} from "../calls/pipeline/adapter.ts";
import type { PlannedRoute } from "../routing/planned-route.ts";
import type { PreparedCall } from "../routing/prepared-call.ts";
import { detachedReadMs } from "../routing/upstream.ts";
import type { NativeCallRoute, NativeMeter } from "../provider/native.ts";
import type { VendorReply } from "../provider/reply.ts";
import { withCharacters } from "../provider/task-params.ts";
import type { Vendor } from "../provider/vendor.ts";
import type { NativeContext } from "./context.ts";
import {
  checkModel,
  findNamed,
  madeUnits,
  type NamedModel,
  type NativeModel,
  noSuchModel,
  spokenTexts,
  unitsOf,
} from "./models.ts";
import { callPath, firstCredential, type NativeExchange, outwardAddresses } from "./mount.ts";
import { hasError } from "../dialect/vendor-error.ts";
import { ObjectScan } from "../wire/json/scan.ts";
import { NativeArray, NativeEvents, parseObject } from "./reply-stream.ts";
import { customerHeaders, vendorRequest } from "./send.ts";
import { checkObjects } from "./refusal.ts";
import { checkReferences, claimObjects } from "./store.ts";
import { unwrapFirstEventError } from "./first-event.ts";

/** A native call for the pipeline. Reads the request as its vendor's route declares it. */
export class NativeAdapter extends CallAdapter<Buffer> {
  override readonly acceptsAnyModel = true;
  readonly #exchange: NativeExchange<NativeCallRoute>;
  readonly #context: NativeContext;
  #named: NamedModel | undefined;

  constructor(exchange: NativeExchange<NativeCallRoute>, context: NativeContext) {
    super();
    this.#exchange = exchange;
    this.#context = context;
  }

  get path(): string {
    return callPath(this.#exchange);
  }

  override get method(): string {
    return this.#exchange.method;
  }

  override get route(): string {
    return `${this.#exchange.mount.prefix}/*`;
  }

  override get repetition(): Repetition<Buffer> {
    const { method, path, query, request } = this.#exchange;
    return repetitionOfBytes(method, path, query, request.fingerprint);
  }

  read(): ReadRequest<Buffer> {
    const { mount, route, request } = this.#exchange;
    request.needBody();
    const { named, found } = findNamed(request, route.model, (name) =>
      this.#context.findModel(mount.vendor.name, name),
    );
    this.#named = named;
    return new NativeRequest(this.#exchange, this.#context, { named, found });
  }

  modelName(): string {
    return this.#named?.name ?? "";
  }
}

/** The model of a request. */
interface Found {
  readonly named: NamedModel;
  /** Undefined if this vendor does not serve it. */
  readonly found: NativeModel | undefined;
}

/** A native request that has been read. */
class NativeRequest extends ReadRequest<Buffer> {
  override readonly dialect = Dialect.UNSPECIFIED;
  override readonly isRepeatable: boolean;
  text: RequestSummary;
  readonly #exchange: NativeExchange<NativeCallRoute>;
  readonly #context: NativeContext;
  readonly #model: Found;
  /** Billed features of the request other than text; undefined if there are none. */
  readonly #features: BilledFeatures | undefined;
  /** Names of objects that the reply has created. */
  readonly #made = new Set<string>();
  /** The name of the used credential; empty for the vendor's only one. */
  #credential = "";
  /** The meter of a streamed reply. */
  #streamed: NativeMeter | undefined;

  constructor(exchange: NativeExchange<NativeCallRoute>, context: NativeContext, model: Found) {
    super();
    this.#exchange = exchange;
    this.#context = context;
    this.#model = model;
    const { route, request } = exchange;
    this.isRepeatable = route.isJob !== true;
    const { bytes } = request;
    const stream = route.reply(request) !== "whole";
    const { named, found } = model;
    if (found === undefined) {
      this.text = { model: named.name, stream, maxOutputTokens: 0, choices: 1, bytes };
      return;
    }
    checkModel(found.model, route.types);
    const limits = route.limits(request, found.model, context.clock.now());
    const { maxOutputTokens, choices = 1, features, maxImages: maxImagesEach, ...most } = limits;
    this.#features = features;
    const made = unitsOf({
      images: times(most.images, choices),
      seconds: times(most.seconds, choices),
    });
    const units = withCharacters(made, found.model, () => spokenTexts(request));
    const maxImages = maxImagesEach && times(maxImagesEach, choices);
    this.text = {
      model: found.model.key,
      stream,
      maxOutputTokens,
      choices,
      bytes,
      units,
      maxImages,
    };
  }

  override plan(): readonly PlannedRoute[] {
    const { config } = this.#exchange.mount;
    const { route, model } = this.#found;
    return [{ route, dialect: this.dialect, detachedReadMs: detachedReadMs(config, model) }];
  }

  /** Checks that referenced objects belong to the caller; nothing is inserted in their place. */
  override recall(routes: readonly PlannedRoute[]): Promise<Recalled<Buffer>> | undefined {
    if (this.#exchange.mount.api.references === undefined) return undefined;
    return checkReferences(this.#exchange, this.#context).then((owned) => {
      if (owned === undefined) return { request: this, routes };
      this.text = { ...this.text, storedTokens: owned.tokens };
      return { request: this, routes: boundTo(this.#exchange.mount, routes, owned.credential) };
    });
  }

  /** Remembers the owner of created objects: the caller may refer to them later. */
  override keep(): Promise<void> | undefined {
    const { mount, caller } = this.#exchange;
    const names = [...this.#made];
    if (names.length === 0) return undefined;
    this.#made.clear();
    const credential = this.#credential;
    const owner = { vendor: mount.config.name, accountId: caller.accountId, credential };
    return mapDatabaseLoss(claimObjects(this.#context.pool, owner, names));
  }

  prepare(_model: ModelConfig, { route }: PlannedRoute): PreparedCall {
    const change = { named: this.#model.named, vendorModel: route.model };
    const sent = vendorRequest(this.#exchange, this.#context.publicUrl(), change);
    const send = async (vendor: Vendor, signal: CancelSignal): Promise<VendorReply> => {
      const { native } = vendor;
      if (native === undefined) throw new TypeError(`${vendor.name} has no form of its own`);
      this.#credential = credentialOf(this.#exchange.mount, vendor);
      const begun = native.send({ ...sent, signal }).then((reply) => this.#checkObjects(reply));
      const looked = begun.then((reply) => unwrapFirstEventError(vendor, reply));
      return this.#exchange.route.isJob ? asJob(looked) : looked;
    };
    const features = this.#features;
    return { headers: sent.headers, body: sent.body, dropped: [], features, send };
  }

  override isStreamed({ status, headers }: VendorReply): boolean {
    const type = headers["content-type"] ?? "";
    if (status < 200 || status > 299) return false;
    if (type.startsWith("text/event-stream")) return true;
    return this.#reply() === "array" && type.includes("json");
  }

  override meter(delivered: Delivered): Metered {
    const { route } = this.#exchange;
    if (route.isInputCharged ?? route.meter === undefined) return meterInput(delivered);
    const metered = meter(delivered);
    if (delivered.units === undefined) return metered;
    // No vendor reports the number of spoken characters.
    const { characters } = this.text.units ?? {};
    const units = { ...delivered.units, ...(characters !== undefined && { characters }) };
    // An image without text is still a reply.
    const usage = metered.usage ?? delivered.reported ?? create(UsageSchema);
    return { usage, source: UsageSource.UPSTREAM, units, isCharged: true };
  }

  whole(body: Buffer, _planned: PlannedRoute, reply: VendorReply): WholeReply<Buffer> {
    const read = this.#meter(reply);
    read?.read(body, 0, body.length);
    const { creates } = this.#exchange.route;
    if (creates !== undefined) this.#onObject(parseObject(body.toString("utf8")));
    return {
      body: rewriteAddresses(body, this.#addresses()),
      usage: read?.usage,
      textBytes: read?.textBytes ?? 0,
      units: read && madeUnits(read),
      isFailed: read !== undefined && isFailure(body, read),
    };
  }

  stream(_planned: PlannedRoute, reply: VendorReply): ReplyStream<Buffer> {
    const read = this.#meter(reply);
    if (read === undefined)
      throw invalid(undefined, "This request cannot be streamed: leave streaming off");
    this.#streamed = read;
    const onObject =
      this.#exchange.route.creates && ((json: JsonObject): void => this.#claim(json));
    const options = { meter: read, addresses: this.#addresses(), onObject };
    return this.#reply() === "array" ? new NativeArray(options) : new NativeEvents(options);
  }

  override addedTextBytes(event: Buffer, { answer }: AnsweredBy): number {
    let textBytes = 0;
    const measure = (bytes: Buffer): void => {
      const added = this.#streamed?.addedTextBytes?.(bytes, 0, bytes.length);
      textBytes += added ?? textBytesOf(bytes, this.#meter(answer));
    };
    // In an array, a bracket or a comma precedes each object.
    if (this.#reply() === "array") measure(event.subarray(event.indexOf("{")));
    else new EventDataReader().read([event], (data) => measure(Buffer.from(data)));
    return textBytes;
  }

  headers({ upstream, length }: ReplyHead): Record<string, string> {
    return customerHeaders(this.#exchange, this.#context.publicUrl(), {
      headers: upstream,
      length,
    });
  }

  refusal({ body }: VendorRefusal): Buffer {
    return rewriteAddresses(body, this.#addresses());
  }

  /** The cost of a complete reply is in its header only: the vendor's form has no member for it. */
  override costWriter(): CostWriter<Buffer> | undefined {
    const isAsked = this.#exchange.request.headers["x-uas-cost"] === "true";
    return isAsked && !this.text.stream ? headerOnly : undefined;
  }

  #meter({ headers }: VendorReply): NativeMeter | undefined {
    const { route, request } = this.#exchange;
    return route.meter?.({ request, model: this.#found.model, headers });
  }

  /**
   * Reports a referenced object that the vendor no longer has, as one that never existed. @throws
   * GatewayError NOT_FOUND
   */
  #checkObjects(reply: VendorReply): Promise<VendorReply> | VendorReply {
    return this.text.storedTokens ? checkObjects(this.#exchange.mount, reply) : reply;
  }

  #onObject(json: JsonObject | undefined): void {
    for (const name of (json && this.#exchange.route.creates?.(json)) ?? []) this.#made.add(name);
  }

  /** Claims objects at once: a client may use an id before the stream ends. */
  #claim(json: JsonObject): void {
    this.#onObject(json);
    this.keep()?.catch((error: unknown) => {
      this.#context.log.warn({ err: error }, "the owner of a vendor's object could not be stored");
    });
  }

  #addresses() {
    return outwardAddresses(this.#exchange, this.#context.publicUrl());
  }

  #reply(): "whole" | "events" | "array" {
    return this.#exchange.route.reply(this.#exchange.request);
  }

  get #found(): NativeModel {
    const { found, named } = this.#model;
    if (found === undefined) throw noSuchModel(named.name);
    return found;
  }
}

const headerOnly: CostWriter<Buffer> = {
  whole: (body) => body,
  write: (out) => out,
  rest: () => emptyBuffer,
};

/** Whether a whole reply is an error or empty, independent of its status. */
function isFailure(body: Buffer, read: NativeMeter): boolean {
  const { usage, textBytes, images, seconds = 0 } = read;
  if (usage !== undefined || textBytes > 0 || images > 0 || seconds > 0) return false;
  if (read.isFailed) return true;
  return (
    emptyObject.test(body.toString("latin1")) ||
    hasError(new ObjectScan().scan(body, 0, body.length))
  );
}

const emptyObject = /^\s*(?:\{\s*\}\s*)?$/;

/** Bytes of text that a new meter counts in one object. */
function textBytesOf(bytes: Buffer, alone: NativeMeter | undefined): number {
  alone?.read(bytes, 0, bytes.length);
  return alone?.textBytes ?? 0;
}

/**
 * Routes to the one credential to which objects at the vendor belong.
 *
 * @param credential empty for the first
 */
export function boundTo(
  mount: NativeExchange["mount"],
  routes: readonly PlannedRoute[],
  credential: string,
): readonly PlannedRoute[] {
  const name = credential || firstCredential(mount) || undefined;
  return routes.map((route) => ({ ...route, credential: name }));
}

/** The name of a client's credential; empty for the vendor's only one. */
export function credentialOf({ byCredential }: NativeExchange["mount"], vendor: Vendor): string {
  for (const each of byCredential.values()) if (each.vendor === vendor) return each.credential;
  return "";
}

function times(value: number | undefined, choices: number): number {
  return (value ?? 0) * choices;
}
