import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { GatewayError } from "../../errors.ts";
import type { RelayedReply, RelayOptions, StreamRelay } from "../dialect.ts";

/** See {@link TextDialect.relayReply}. */
export function relayMessagesReply(_body: Buffer, _options: RelayOptions): RelayedReply {
  throw new Error("not written yet");
}

/** See {@link TextDialect.relayStream}. */
export class MessagesStreamRelay implements StreamRelay {
  usage: Usage | undefined;
  textBytes = 0;
  finished = false;
  done = false;
  failed = false;

  constructor(_options: RelayOptions) {}

  push(_pieces: readonly Buffer[]): Buffer {
    throw new Error("not written yet");
  }

  end(): Buffer {
    throw new Error("not written yet");
  }

  errorEvent(_error: GatewayError): Buffer {
    throw new Error("not written yet");
  }
}
