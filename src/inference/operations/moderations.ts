/** Requests for moderations in OpenAI's form, charged by what was read. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { type ModelBody, readModelBody } from "../../dialect/body-members.ts";
import { readInputUsage } from "../../dialect/embeddings.ts";
import { relayJsonReply } from "../../dialect/json-reply.ts";
import { UnreadableReplyError } from "../../dialect/json/value.ts";
import { type Delivered, type Metered, meterInput } from "../metering.ts";
import type { PlannedRoute, RequestSummary, WholeReply } from "../pipeline/adapter.ts";
import { type BodyMessage, BodyRequest } from "./body-request.ts";
import { inputOnly } from "./embeddings.ts";

/** A request for moderations that has been read. */
export class ModerationsRequest extends BodyRequest {
  override readonly operation = "moderate";
  readonly text: RequestSummary;
  protected readonly body: ModelBody;
  protected readonly modelTypes = [ModelType.MODERATION];

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: BodyMessage) {
    super(message);
    this.body = readModelBody(message.body, ["input"]);
    this.text = inputOnly(this.body);
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const reply = relayJsonReply(body, this.publicModel(planned));
    if (!reply.hasArray("results")) throw new UnreadableReplyError("moderations without results");
    return { body: reply.body, usage: readInputUsage(reply.record("usage")), textBytes: 0 };
  }

  override meter(delivered: Delivered): Metered {
    return meterInput(delivered);
  }
}
