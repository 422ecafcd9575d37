/**
 * One request of a connection: the sink of its reply, whose events become messages, and the
 * conversation that it continues.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { KeyCaller } from "../../core/caller.ts";
import { type CancelSignal, CancelSource } from "../../core/cancel-signal.ts";
import { errorMeanings, type GatewayError } from "../../core/errors.ts";
import type { SinkHead } from "../../core/sink.ts";
import { withoutSpace } from "../../wire/json/source.ts";
import { parseRecord, recordAt, textAt } from "../../wire/json/value.ts";
import { EventDataReader } from "../../wire/sse/event-stream.ts";
import { errorHeaders } from "../rest/errors.ts";
import type { DirectCall } from "../rest/options.ts";
import { type EndedResponse, endedResponse } from "./kept-conversations.ts";

/** The destination of the messages of a turn. */
interface Messages {
  /** Sends one message. Resolves when more can be taken; `undefined` means at once. */
  send(text: string): Promise<void> | undefined;
}

/** Options of a turn. */
interface TurnOptions {
  readonly messages: Messages;
  readonly caller: KeyCaller;
  readonly requestId: string;
  /** The stream that its messages name; empty if it is unnamed. */
  readonly streamId: string;
  /**
   * The response that it continues within the connection, which the reply repeats; empty if there
   * is none.
   */
  readonly previousId: string;
}

/** A request with its caller, its cancellation and the sink of its reply. */
export class SocketTurn extends CancelSource implements DirectCall {
  readonly #options: TurnOptions;
  readonly #events = new EventDataReader();
  /** The response, once it has ended as one that can be continued. */
  ended: EndedResponse | undefined;

  constructor(options: TurnOptions) {
    super();
    this.#options = options;
  }

  get keyCaller(): KeyCaller {
    return this.#options.caller;
  }

  get requestId(): string {
    return this.#options.requestId;
  }

  /** Each turn begins a trace. */
  get traceparent(): undefined {
    return undefined;
  }

  /** A connection has one header for all its requests: it identifies none of them. */
  get idempotencyKey(): undefined {
    return undefined;
  }

  get signal(): CancelSignal {
    return this;
  }

  whole({ status, headers }: SinkHead, body: Buffer): void {
    if (headers["content-type"]?.startsWith("text/event-stream") === true) {
      void this.chunk(body);
      return;
    }
    const record = parseRecord(body.toString("utf8"));
    if (status >= 400) {
      const error = (record && recordAt(record, "error")) ?? {
        message: "The model's vendor refused the request",
      };
      void this.#send(JSON.stringify({ type: "error", status, error: { ...noMembers, ...error } }));
      return;
    }
    // A vendor that does not stream.
    const type = textAt(record ?? {}, "status") === "incomplete" ? "incomplete" : "completed";
    const response = record === undefined ? "null" : withoutSpace(body.toString("utf8"));
    void this.#onEvent(`{"type":"response.${type}","sequence_number":0,"response":${response}}`);
  }

  head(): void {}

  chunk(out: Buffer): Promise<void> | undefined {
    let waiting: Promise<void> | undefined;
    this.#events.read([out], (event) => {
      // Other styles end their streams with a line that is not an event.
      if (event.startsWith("{")) waiting = this.#onEvent(event);
    });
    return waiting;
  }

  #onEvent(event: string): Promise<void> | undefined {
    this.ended ??= endedResponse(event);
    if (isError.test(event)) return this.#send(withStatus(event));
    const { previousId } = this.#options;
    const isState = previousId !== "" && stateEvent.test(event);
    // The vendor got the conversation itself in place of the id.
    const shown = isState
      ? event.replace(
          '"previous_response_id":null',
          () => `"previous_response_id":${JSON.stringify(previousId)}`,
        )
      : event;
    return this.#send(shown);
  }

  #send(event: string): Promise<void> | undefined {
    const { messages, streamId } = this.#options;
    if (streamId === "") return messages.send(event);
    return messages.send(`{"stream_id":${JSON.stringify(streamId)},${event.slice(1)}`);
  }
}

const noMembers = { type: "invalid_request_error", code: null, message: "", param: null };

/** Events of the response itself. Their type is one of the first members. */
const stateEvent =
  /^[^[]{0,200}"response\.(?:created|queued|in_progress|completed|incomplete|failed)"/;

const isError = /^\s*\{[^{}[\]]{0,200}"type"\s*:\s*"error"/;

/** Statuses by the documented code. */
const statuses = new Map(Object.values(errorMeanings).map(({ word, status }) => [word, status]));

/**
 * Adds the status to an error within a stream: some clients treat events without one as notices.
 */
function withStatus(event: string): string {
  const record = parseRecord(event) ?? {};
  if (record["status"] !== undefined) return event;
  const code = textAt(recordAt(record, "error") ?? record, "code");
  return `{"status":${statuses.get(code) ?? 500},${event.trimStart().slice(1)}`;
}

/** The message for a request that is refused. */
export function errorMessage(error: GatewayError, requestId: string): string {
  const { meaning, message, param = null, status } = error;
  const { error_code: own, ...details } = error.details;
  const isLost = param === "previous_response_id" && status === 400;
  const code = isLost ? "previous_response_not_found" : (own ?? meaning.word);
  const headers = { ...errorHeaders(error), "x-request-id": requestId };
  const body: JsonObject = { type: meaning.type, code, message, param };
  if (Object.keys(details).length > 0) body["details"] = details;
  return JSON.stringify({ type: "error", status, error: { ...body, headers }, headers });
}
