/** Asks vendors about responses that they keep. Who owns one is known before. */
import type { Logger } from "pino";
import { jsonDepthMax, replyBytesMax } from "../../config/limits.ts";
import { type Member, scanObject } from "../../dialect/json/outline.ts";
import { JsonScanError } from "../../dialect/json/string-scan.ts";
import { Splicer } from "../../dialect/json/splice.ts";
import { GatewayError, ErrorCode } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { Metrics } from "../../core/metrics.ts";
import { errorMember, textMember } from "../../vendor/http-vendor.ts";
import type { ResponseStateCall, Vendor, VendorReply } from "../../vendor/vendor.ts";
import { unusable } from "../pipeline/failures.ts";
import { failureError, readRefusal, retryAfterSeconds } from "../upstream-refusal.ts";
import { keeperGone, noSuchResponse } from "./failures.ts";

/** See {@link createVendorState}. */
export interface VendorState {
  /**
   * Resolves to the vendor's answer: a JSON object, unchanged but for the model's name.
   *
   * @throws GatewayError NOT_FOUND where the vendor has the response no more, or is not used any more; else
   * as a call to a model would fail
   */
  ask(question: VendorQuestion): Promise<Buffer>;
}

/** What to ask. */
export interface VendorQuestion extends ResponseStateCall {
  /** The vendor's name. */
  readonly vendor: string;
  /** The public name of the model, to be put where the vendor wrote its own. */
  readonly model: string;
}

/** What {@link createVendorState} needs. */
export interface VendorStateOptions {
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** The most of a refusal's body that is read, in bytes. */
const refusalBytesMax = 1024 * 1024;

/** A response repeats parts of its request, a few levels further in. */
const replyDepthMax = 2 * jsonDepthMax;

/** Makes one over the vendors of a process. */
export function createVendorState(options: VendorStateOptions): VendorState {
  const { vendors, log } = options;
  return {
    async ask(question) {
      const { vendor, responseId, model } = question;
      const keeper = vendors.get(vendor);
      if (keeper?.responseState === undefined) throw keeperGone(responseId, vendor);
      try {
        const reply = await keeper.responseState(question);
        const isAnswer = reply.status >= 200 && reply.status < 300;
        if (!isAnswer) throw await refused(options, { keeper, responseId, reply });
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
  readonly keeper: Vendor;
  readonly responseId: string;
  readonly reply: VendorReply;
}

/** As for calls to models (R-ERR-3, R-ERR-4), but 404 is about the response and not about the model. */
async function refused(
  { metrics, log }: VendorStateOptions,
  { keeper, responseId, reply }: Refused,
): Promise<GatewayError> {
  const { status, headers } = reply;
  const { name: vendor } = keeper;
  const body = await reply.body.whole(refusalBytesMax);
  if (status === 404) return noSuchResponse(responseId);
  const fault = keeper.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? keeper.retryAfterOf?.(body);
  const refusal = readRefusal({ status, headers, body, fault, retryAfter });
  const { pass, error, alarm } = refusal;
  if (alarm !== undefined) {
    metrics.upstreamAlarms.inc({ vendor, reason: alarm });
    log.error({ vendor, status, alarm }, "a vendor refuses the gateway itself: act on its account");
  }
  const told = pass ? textMember(errorMember(body) ?? {}, "message") : "";
  return told === "" ? error : new GatewayError(ErrorCode.INVALID_REQUEST, told, { status });
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
    return scanObject(body, replyDepthMax).members;
  } catch (error) {
    if (error instanceof JsonScanError) throw unusable("a body that is no JSON object");
    throw error;
  }
}
