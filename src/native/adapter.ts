/** Adapts synchronous native calls to the call pipeline: they are admitted, held and settled like every call. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { UsageSchema, UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { invalid } from "../core/validation.ts";
import type { BilledFeatures } from "../dialect/billed-features.ts";
import { rewriteAddresses } from "../dialect/json/addresses.ts";
import { asJob } from "../inference/job-reply.ts";
import { detachedReadMs } from "../inference/upstream.ts";
import { type Delivered, meter, type Metered, meterInput } from "../inference/metering.ts";
import {
  type RequestSummary,
  CallAdapter,
  type PlannedRoute,
  type PreparedCall,
  ReadRequest,
  type Recalled,
  type VendorRefusal,
  type ReplyHead,
  type ReplyStream,
  type WholeReply,
} from "../inference/pipeline/adapter.ts";
import type { Vendor } from "../vendor/vendor.ts";
import type { VendorReply } from "../vendor/reply.ts";
import { type NativeContext } from "./context.ts";
import { outwardAddresses, type NativeExchange } from "./mount.ts";
import { unwrapFirstEventError } from "./first-event.ts";
import {
  checkModel,
  madeUnits,
  namedModel,
  type NamedModel,
  type NativeModel,
  noSuchModel,
  unitsOf,
} from "./models.ts";
import { NativeArray, NativeEvents, parseObject } from "./reply-stream.ts";
import { customerHeaders, vendorRequest } from "./send.ts";
import { checkReferences, claimObjects } from "./store.ts";
import type { NativeCallRoute, NativeMeter } from "../vendor/native.ts";

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
    const { mount, path } = this.#exchange;
    return `${mount.prefix}${path}`.slice(0, 256);
  }

  read(): ReadRequest<Buffer> {
    const { mount, route, request } = this.#exchange;
    request.needBody();
    const named = namedModel(request, route.model);
    this.#named = named;
    const found = this.#context.findModel(mount.vendor.name, named.name);
    return new NativeRequest(this.#exchange, this.#context, { named, found });
  }

  modelName(): string {
    return this.#named?.name ?? "";
  }
}

/** The model of a request. */
interface Found {
  readonly named: NamedModel;
  /** `undefined`: this vendor does not serve it. */
  readonly found: NativeModel | undefined;
}

/** A native request that has been read. */
class NativeRequest extends ReadRequest<Buffer> {
  override readonly dialect = Dialect.UNSPECIFIED;
  override readonly isRepeatable: boolean;
  readonly text: RequestSummary;
  readonly #exchange: NativeExchange<NativeCallRoute>;
  readonly #context: NativeContext;
  readonly #model: Found;
  /** What the request asks for beyond text; `undefined`: nothing. */
  readonly #features: BilledFeatures | undefined;
  /** Names of objects that the reply has created. */
  readonly #made = new Set<string>();

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
    const { maxOutputTokens, choices = 1, features, ...most } = route.limits(request, found.model);
    this.#features = features;
    const units = unitsOf({
      images: times(most.images, choices),
      seconds: times(most.seconds, choices),
    });
    this.text = { model: found.model.key, stream, maxOutputTokens, choices, bytes, units };
  }

  override plan(): readonly PlannedRoute[] {
    const { config } = this.#exchange.mount;
    const { route, model } = this.#found;
    // Objects at the vendor belong to one credential: the first.
    const credential = config.credentials?.[0]?.name;
    const readMs = detachedReadMs(config, model);
    return [{ route, dialect: this.dialect, detachedReadMs: readMs, credential }];
  }

  /** Checks that referenced objects are the caller's; nothing is inserted in their place. */
  override recall(routes: readonly PlannedRoute[]): Promise<Recalled<Buffer>> | undefined {
    if (this.#exchange.mount.api.references === undefined) return undefined;
    return checkReferences(this.#exchange, this.#context).then(() => ({ request: this, routes }));
  }

  /** Remembers the owner of created objects: the caller may refer to them later. */
  override keep(): Promise<void> | undefined {
    const { mount, caller } = this.#exchange;
    const names = [...this.#made];
    if (names.length === 0) return undefined;
    this.#made.clear();
    const owner = { vendor: mount.config.name, accountId: caller.accountId };
    return mapDatabaseLoss(claimObjects(this.#context.pool, owner, names));
  }

  prepare(_model: ModelConfig, { route }: PlannedRoute): PreparedCall {
    const change = { named: this.#model.named, vendorModel: route.model };
    const sent = vendorRequest(this.#exchange, this.#context.publicUrl(), change);
    const send = async (vendor: Vendor, signal: CancelSignal): Promise<VendorReply> => {
      const { native } = vendor;
      if (native === undefined) throw new TypeError(`${vendor.name} has no form of its own`);
      const begun = native.send({ ...sent, signal });
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
    const { units } = delivered;
    if (units === undefined) return metered;
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
    };
  }

  stream(_planned: PlannedRoute, reply: VendorReply): ReplyStream<Buffer> {
    const read = this.#meter(reply);
    if (read === undefined) throw invalid(undefined, "This is not answered as a stream");
    const onObject =
      this.#exchange.route.creates && ((json: JsonObject): void => this.#claim(json));
    const options = { meter: read, addresses: this.#addresses(), onObject };
    return this.#reply() === "array" ? new NativeArray(options) : new NativeEvents(options);
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

  #meter({ headers }: VendorReply): NativeMeter | undefined {
    const { route, request } = this.#exchange;
    return route.meter?.({ request, model: this.#found.model, headers });
  }

  #onObject(json: JsonObject | undefined): void {
    for (const name of (json && this.#exchange.route.creates?.(json)) ?? []) this.#made.add(name);
  }

  /** Claims objects at once: a client may use an id before the stream ends. */
  #claim(json: JsonObject): void {
    this.#onObject(json);
    this.keep()?.catch((error: unknown) => {
      this.#context.log.warn({ err: error }, "an object of a vendor could not be remembered");
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

function times(value: number | undefined, choices: number): number {
  return (value ?? 0) * choices;
}
