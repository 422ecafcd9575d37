/** Requests to rank documents, charged by search or token. */
import { create } from "@bufbuild/protobuf";
import type { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { Dialect as Dialects } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSchema, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { invalid } from "../../core/validation.ts";
import {
  documentsPerSearch,
  readRerankBody,
  relayRerank,
  type RerankBody,
} from "../../dialect/rerank.ts";
import { nothingMetered } from "../media/audio-request.ts";
import type { Delivered, Metered } from "../metering.ts";
import type { PlannedRoute, RequestSummary, WholeReply } from "../pipeline/adapter.ts";
import { type BodyMessage, BodyRequest } from "./body-request.ts";

/** A request as it comes: the style is that of the route. */
export interface RerankMessage extends BodyMessage {
  readonly dialect: Dialect;
}

/** A request to rank documents that has been read. */
export class RerankRequest extends BodyRequest {
  override readonly operation = "rerank";
  override readonly dialect: Dialect;
  readonly text: RequestSummary;
  protected readonly body: RerankBody;
  protected readonly modelTypes = [ModelType.RERANK];

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: RerankMessage) {
    super(message);
    this.dialect = message.dialect;
    const { RERANK, RERANK_V2 } = Dialects;
    if (this.dialect !== RERANK && this.dialect !== RERANK_V2) {
      throw invalid("dialect", "dialect: send one of the two of rerank");
    }
    this.body = readRerankBody(message.body, this.dialect === RERANK_V2);
    const { model, bytes, searchesMax, repeatedBytes } = this.body;
    this.text = {
      model,
      stream: false,
      maxOutputTokens: 0,
      choices: 1,
      bytes: bytes.length + repeatedBytes,
      storedBytes: repeatedBytes,
      units: { searches: searchesMax },
    };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const { searches, ...reply } = relayRerank(body, this.publicModel(planned));
    return { ...reply, textBytes: 0, units: searches === undefined ? undefined : { searches } };
  }

  /** The documents are charged once their order is there, or the vendor has them and nobody waits any more. */
  override meter({
    reported,
    units,
    inputTokens = 0,
    isComplete,
    isInputOwed,
    price,
  }: Delivered): Metered {
    if (!isComplete && isInputOwed !== true) return nothingMetered;
    const { input, search } = price ?? {};
    const told = units?.searches;
    const isEstimated =
      (input !== undefined && reported === undefined) ||
      (search !== undefined && told === undefined);
    const searches = told ?? Math.ceil(this.body.documents / documentsPerSearch);
    return {
      usage: reported ?? create(UsageSchema, input === undefined ? {} : { inputTokens }),
      source: isEstimated ? UsageSource.ESTIMATED : UsageSource.UPSTREAM,
      units: { searches },
      isCharged: true,
    };
  }
}
