/**
 * Sends requests about stored responses to the vendors that store them. Ownership is checked
 * before.
 */
import type { Logger } from "pino";
import { jsonDepthMax, replyBytesMax } from "../../core/limits.ts";
import { type Member, scanObject } from "../../wire/json/outline.ts";
import { JsonScanError } from "../../wire/json/scan.ts";
import { Splicer } from "../../wire/json/splice.ts";
import { GatewayError, ErrorCode } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { errorMember, textMember } from "../../provider/http-vendor.ts";
import type { ResponseStateCall, Vendor } from "../../provider/vendor.ts";
import type { VendorReply } from "../../provider/reply.ts";
import { unusableReply } from "../../routing/upstream-refusal.ts";
import { failureError, readRefusal, retryAfterSeconds } from "../../routing/upstream-refusal.ts";
import { vendorRemoved, noSuchResponse } from "./failures.ts";

/** The responses that vendors store. */
export interface VendorState {
  /**
   * Resolves to the vendor's answer: a JSON object, unchanged except for the model's name.
   *
   * @throws GatewayError NOT_FOUND if the vendor no longer has the response, or is no longer
   * configured; else the errors of a model call
   */
  send(request: VendorStateRequest): Promise<Buffer>;
}

/** A request about one stored response. */
export interface VendorStateRequest extends ResponseStateCall {
  /** The vendor's name. */
  readonly vendor: string;
  /** The public name of the model, which replaces the vendor's in the answer. */
  readonly model: string;
}

/** Options of {@link createVendorState}. */
export interface VendorStateOptions {
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Size limit of a refusal's body. */
const refusalBytesMax = 1024 * 1024;

/** A response nests parts of its request a few levels deeper. */
const replyDepthMax = 2 * jsonDepthMax;

/** Creates the vendor state. */
export function createVendorState(options: VendorStateOptions): VendorState {
  const { vendors, log } = options;
  return {
    async send(request) {
      const { vendor, responseId, model } = request;
      const storing = vendors.get(vendor);
      if (storing?.responseState === undefined) throw vendorRemoved(responseId, vendor);
      try {
        const reply = await storing.responseState(request);
        const isSuccess = reply.status >= 200 && reply.status < 300;
        if (!isSuccess) throw await refused(options, { storing, responseId, reply });
        return withModel(await reply.body.whole(replyBytesMax), model);
      } catch (error) {
        if (!(error instanceof HttpFailure)) throw error;
        log.warn({ vendor, failure: error.kind, cause: error.message }, "a vendor gave no reply");
        throw failureError(error.kind, error);
      }
    },
  };
}

interface Refused {
  readonly storing: Vendor;
  readonly responseId: string;
  readonly reply: VendorReply;
}

/**
 * Converts a refusal as for model calls (R-ERR-3, R-ERR-4), except that 404 concerns the response,
 * not the model.
 */
async function refused(
  { metrics, log }: VendorStateOptions,
  { storing, responseId, reply }: Refused,
): Promise<GatewayError> {
  const { status, headers } = reply;
  const { name: vendor } = storing;
  const body = await reply.body.whole(refusalBytesMax);
  if (status === 404) return noSuchResponse(responseId);
  const fault = storing.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? storing.retryAfterOf?.(body);
  const refusal = readRefusal({ status, headers, body, fault, retryAfter });
  const { isRelayed, error, alarm } = refusal;
  if (alarm !== undefined) {
    metrics.upstreamAlarms.inc({ vendor, reason: alarm });
    log.error(
      { vendor, status, alarm },
      "a vendor refuses the operator's account: check its credential, balance and model name",
    );
  }
  const message = isRelayed ? textMember(errorMember(body) ?? {}, "message") : "";
  return message === "" ? error : new GatewayError(ErrorCode.INVALID_REQUEST, message, { status });
}

function withModel(body: Buffer, model: string): Buffer {
  const splicer = new Splicer();
  for (const { key, valueStart, valueEnd } of membersOf(body)) {
    if (key === "model") splicer.replace(valueStart, valueEnd, Buffer.from(JSON.stringify(model)));
  }
  return splicer.apply(body, body.length);
}

function membersOf(body: Buffer): readonly Member[] {
  try {
    return scanObject(body, { depthMax: replyDepthMax }).members;
  } catch (error) {
    if (error instanceof JsonScanError) throw unusableReply("a body that is no JSON object");
    throw error;
  }
}
