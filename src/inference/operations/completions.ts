/** Requests for legacy completions in OpenAI's form, charged by token. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import {
  type CompletionBody,
  type CompletionRelayOptions,
  CompletionStreamRelay,
  readCompletionBody,
  relayCompletion,
} from "../../dialect/completions.ts";
import type { PlannedRoute, ReplyStream, RequestSummary, WholeReply } from "../pipeline/adapter.ts";
import { type BodyMessage, BodyRequest } from "./body-request.ts";

/** A request for a completion that has been read. */
export class CompletionRequest extends BodyRequest {
  override readonly operation = "complete";
  readonly text: RequestSummary;
  protected readonly body: CompletionBody;
  protected readonly modelTypes = [ModelType.TEXT];

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: BodyMessage) {
    super(message);
    this.body = readCompletionBody(message.body);
    const { model, stream, maxOutputTokens, made, bytes } = this.body;
    this.text = { model, stream, maxOutputTokens, choices: made, bytes: bytes.length };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    return relayCompletion(body, this.#relayOptions(planned));
  }

  override stream(planned: PlannedRoute): ReplyStream<Buffer> {
    return new CompletionStreamRelay(this.#relayOptions(planned));
  }

  #relayOptions(planned: PlannedRoute): CompletionRelayOptions {
    const { stream, wantsUsage, choices, echoed } = this.body;
    return {
      echoed,
      publicModel: this.publicModel(planned),
      hideUsage: stream && !wantsUsage,
      choices,
    };
  }
}
