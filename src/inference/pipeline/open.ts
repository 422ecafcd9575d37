/** Tries the routes of a call until one vendor answers, and records every attempt. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { VendorReply } from "../../vendor/reply.ts";
import { upstreamRequestId } from "../headers.ts";
import { tryRoutes, type OpenReply } from "../upstream.ts";
import type { Chunk, PlannedRoute, PreparedCall, WholeReply } from "./adapter.ts";
import { DisconnectHandler } from "./disconnect.ts";
import type { Held } from "./hold.ts";
import { readCompleteBody, StreamReply } from "./reply.ts";

/** A call that a vendor has answered. */
export interface Opened<Out extends Chunk> extends Held<Out> {
  readonly planned: PlannedRoute;
  readonly answer: VendorReply;
  readonly reply: Reply<Out>;
}

/** A vendor's reply, read far enough to know its kind. */
export type Reply<Out extends Chunk> =
  | { readonly kind: "stream"; readonly stream: StreamReply<Out> }
  | { readonly kind: "whole"; readonly whole: WholeReply<Out>; readonly body: Buffer }
  /** The vendor's refusal of the request, passed on unchanged. */
  | { readonly kind: "refusal"; readonly body: Out };

/** The state of a call's attempts, from the first one to the settlement. */
export class Connection {
  readonly client: DisconnectHandler;
  /** Request members that the style of the last attempt could not carry. */
  dropped: readonly string[] = [];
  #open: OpenReply | undefined;
  #isSent = false;

  constructor({ call, context, deps }: Pick<Held<Chunk>, "call" | "context" | "deps">) {
    this.client = new DisconnectHandler({ call, client: context.signal, detached: deps.detached });
  }

  /** The route that answered; `undefined`: none did. */
  get planned(): PlannedRoute | undefined {
    return this.#open?.planned;
  }

  /** Whether a vendor received the whole request and did not refuse it: it then reads the input, and charges for it. */
  get isAccepted(): boolean {
    return this.#open === undefined ? this.#isSent : this.#open.refusal === undefined;
  }

  /** Records a vendor's answer. */
  answered(reply: OpenReply): void {
    this.#open = reply;
  }

  /** Records the error of the last attempt. */
  failed(error: unknown): void {
    const failure = error instanceof GatewayError ? error.cause : error;
    this.#isSent = failure instanceof HttpFailure && failure.isSent;
  }

  /** Releases the vendor's slot, and stops a vendor whose reply has not ended. */
  close(): void {
    this.client.end();
    this.#open?.close();
  }
}

/** Tries the routes in order; the next one only where the last cannot have done any work. @throws GatewayError */
export async function open<Out extends Chunk>(
  held: Held<Out>,
  connection: Connection,
): Promise<Opened<Out>> {
  const { call, request, routes, deps } = held;
  const opened = await tryRoutes(deps.upstream, routes, {
    operation: request.operation,
    callFor(planned) {
      call.attempting(planned.route.vendor);
      return requestFor(held, planned, connection);
    },
    onFailed: ({ route }, error) => call.failed(route.vendor, error),
  });
  connection.answered(opened);
  const { planned, reply: answer, refusal } = opened;
  call.upstreamRequestId = upstreamRequestId(answer.headers);
  if (refusal !== undefined) {
    call.status = answer.status;
    call.end(CallEnding.UPSTREAM_REFUSED, refusal.error);
    const relayed = request.refusal({ ...refusal, status: answer.status }, planned);
    if (relayed instanceof GatewayError) throw relayed;
    return { ...held, planned, answer, reply: { kind: "refusal", body: relayed } };
  }
  const body = await readCompleteBody(answer, request.isStreamed(answer));
  if (body === undefined) {
    // An adapter without streams throws here.
    const source = request.stream(planned, answer);
    const stream = new StreamReply({ call, stream: source, body: answer.body });
    return { ...held, planned, answer, reply: { kind: "stream", stream } };
  }
  call.answered();
  const whole = request.whole(body, planned, answer);
  return { ...held, planned, answer, reply: { kind: "whole", whole, body } };
}

function requestFor<Out extends Chunk>(
  { routes, first, request, model }: Held<Out>,
  planned: PlannedRoute,
  connection: Connection,
) {
  const isFirst = planned === routes[0];
  const prepared: PreparedCall = (isFirst && first) || request.prepare(model, planned);
  connection.dropped = prepared.dropped;
  const { headers, body, send } = prepared;
  return {
    dialect: planned.dialect ?? Dialect.UNSPECIFIED,
    model: planned.route.model,
    query: planned.dialect === request.dialect ? request.query : "",
    headers,
    body,
    send,
    stream: request.text.stream,
    signal: connection.client.signalFor(
      request.isReadToEnd && planned.detachedReadMs > 0
        ? Number.POSITIVE_INFINITY
        : planned.detachedReadMs,
    ),
  };
}
