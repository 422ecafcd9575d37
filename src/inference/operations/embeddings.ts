/** Requests for embeddings in OpenAI's form, charged by what was read. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { type ModelBody, readModelBody } from "../../dialect/body-members.ts";
import { relayEmbeddings } from "../../dialect/embeddings.ts";
import { type Delivered, type Metered, meterInput } from "../metering.ts";
import type { PlannedRoute, RequestSummary, WholeReply } from "../pipeline/adapter.ts";
import { type BodyMessage, BodyRequest } from "./body-request.ts";

/** A request for embeddings that has been read. */
export class EmbeddingsRequest extends BodyRequest {
  override readonly operation = "embed";
  readonly text: RequestSummary;
  protected readonly body: ModelBody;
  /** TEXT models whose vendors make embeddings serve it, too. */
  protected readonly modelTypes = [ModelType.EMBEDDING, ModelType.TEXT];

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: BodyMessage) {
    super(message);
    this.body = readModelBody(message.body, ["input"]);
    this.text = inputOnly(this.body);
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    return { ...relayEmbeddings(body, this.publicModel(planned)), textBytes: 0 };
  }

  override meter(delivered: Delivered): Metered {
    return meterInput(delivered);
  }
}

/** The summary of a request that only reads. */
export function inputOnly({ model, bytes }: ModelBody): RequestSummary {
  return { model, stream: false, maxOutputTokens: 0, choices: 1, bytes: bytes.length };
}
