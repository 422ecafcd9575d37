/** Event streams of images, of speech and of the text of a recording, in OpenAI's form. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { errorBody } from "../codec.ts";
import type { RelayOptions } from "../dialect.ts";
import { ObjectScan } from "../../wire/json/scan.ts";
import { isRecord, recordAt } from "../../wire/json/value.ts";
import { EventRelay } from "../event-relay.ts";
import { reportedUsage } from "../features/usage.ts";

/** Relays such a stream. A kind of media reads its own events in `onEvent`. */
export abstract class MediaEventsRelay extends EventRelay {
  readonly #event = new ObjectScan();

  /** @param options default: no model name is restored */
  constructor(options: RelayOptions = { publicModel: undefined, hideUsage: false, choices: 1 }) {
    super(options);
  }

  protected failureEvent(error: GatewayError): Buffer {
    return mediaErrorEvent(error);
  }

  /** A file without its last bytes is unusable, so an early end is a failure. */
  protected stopEvents(): Buffer {
    const text = "Insufficient balance: the amount that was set aside for this call is used up";
    return mediaErrorEvent(new GatewayError(ErrorCode.INSUFFICIENT_BALANCE, text));
  }

  protected onData(bytes: Buffer, start: number, end: number): void {
    const event = this.#event.scan(bytes, start, end);
    const type = event.string("type") || this.eventName();
    if (type === "error" || Boolean(event.value("error"))) this.failed = true;
    this.onEvent(type, event);
  }

  /** Reads one event. The scan is valid until the next one. */
  protected abstract onEvent(type: string, event: ObjectScan): void;
}

/** An event as bytes. Its type is also its name. */
export function mediaEvent({ type, ...members }: { readonly type: string }): Buffer {
  const event = { type, ...members };
  return Buffer.from(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** The event that ends a failed stream. */
export function mediaErrorEvent(error: GatewayError): Buffer {
  return mediaEvent({ type: "error", ...errorBody(error) });
}

/** The tokens of a reply; `undefined` if the figures are unusable. */
export function readMediaUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const input = recordAt(usage, "input_tokens_details");
  return reportedUsage({
    input: usage["input_tokens"],
    cached: input?.["cached_tokens"],
    written: undefined,
    output: usage["output_tokens"],
    reasoning: undefined,
  });
}
