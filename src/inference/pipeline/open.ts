/** Makes the attempts of a call until one vendor answers with content, and records every attempt. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { VendorReply } from "../../vendor/reply.ts";
import { upstreamRequestId } from "../headers.ts";
import { firstContentMs as firstContentDefaultMs } from "../../config/limits.ts";
import type { ModelConfig, VendorConfig } from "../../config/config.ts";
import type { AttemptPlan, Binding, Destination } from "../routing/attempt-plan.ts";
import { tryRoutes, type FailedFacts } from "../try-routes.ts";
import type { OpenReply } from "../upstream.ts";
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
  /** A stream of which nothing was delivered yet: what a client that disconnects then is charged for. */
  unfinished: object | undefined;
  #open: OpenReply | undefined;
  #isSent = false;

  constructor({ call, context, deps }: Pick<Held<Chunk>, "call" | "context" | "deps">) {
    this.client = new DisconnectHandler({ call, client: context.signal, detached: deps.detached });
  }

  /** The route that answered; `undefined`: none did. */
  get planned(): PlannedRoute | undefined {
    return this.#open?.destination.planned;
  }

  /** The route and credential that answered; `undefined`: none did. */
  get destination(): Destination | undefined {
    return this.#open?.destination;
  }

  /** Whether a vendor received the whole request and did not refuse it: it then reads the input, and charges for it. */
  get isAccepted(): boolean {
    return this.#open === undefined ? this.#isSent : this.#open.refusal === undefined;
  }

  /** Records a vendor's answer. */
  answered(reply: OpenReply): void {
    this.#open = reply;
  }

  /** Records that the last answer is not used. */
  abandoned(): void {
    this.#open = undefined;
    this.unfinished = undefined;
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

/** Makes attempts until a vendor answers with content. @throws GatewayError */
export async function open<Out extends Chunk>(
  held: Held<Out>,
  connection: Connection,
): Promise<Opened<Out>> {
  const { call, context, request } = held;
  const conversation = new ConversationPlace(held);
  let plan = planFor(held, held.routes, conversation);
  const silence = request.text.stream && request.isRepeatable ? new Silence(connection) : undefined;
  let nextModel = 0;
  try {
    const opened = await tryRoutes(held.deps.upstream, plan, {
      operation: request.operation,
      signal: context.signal,
      nextPlan() {
        const routes = held.fallbacks[nextModel++];
        return routes && (plan = planFor(held, routes, conversation));
      },
      callFor({ planned, route }) {
        call.attempting(route.vendor);
        silence?.start(firstContentMs(modelOf(held, planned), route.owner.config));
        return requestFor(held, planned, connection);
      },
      begin: (answered) => {
        const { hasAlternatives } = plan;
        return begin(held, answered, { connection, silence, hasAlternatives });
      },
      hasFailed: ({ reply }) => reply.kind === "stream" && reply.stream.hasFailedEarly,
      onFailed(destination, failed) {
        connection.abandoned();
        call.failed(destination, failed, possibleCost(held, destination, failed));
      },
    });
    if (opened.reply.kind !== "refusal") conversation.served(connection.destination);
    return opened;
  } finally {
    silence?.stop();
  }
}

/** Plans the attempts at one model. */
function planFor<Out extends Chunk>(
  held: Held<Out>,
  routes: readonly PlannedRoute[],
  conversation: ConversationPlace,
): AttemptPlan {
  const { request, deps, model } = held;
  const { retry } = routes[0]?.fallback?.model ?? model;
  const isOnce = request.wishes.preferences?.allowFallbacks === false;
  return deps.upstream.attempts(routes, {
    retry: isOnce && request.wishes.preferences?.order === undefined ? onlyOnce : retry,
    contextTokens: () => contextTokens(held),
    isRepeatable: request.isRepeatable,
    binding: () => conversation.find(),
  });
}

const onlyOnce = { attempts: 1, withinMs: 0 };

/** The model that takes the call on a route. */
function modelOf<Out extends Chunk>({ model }: Held<Out>, { fallback }: PlannedRoute): ModelConfig {
  return fallback?.model ?? model;
}

/** Where the conversation of a call is. Nothing is looked up for models with a single candidate. */
class ConversationPlace {
  readonly #held: Held<Chunk>;
  #key: string | undefined;

  constructor(held: Held<Chunk>) {
    this.#held = held;
  }

  /** `undefined`: it has none yet. */
  find(): Binding | undefined {
    const { request, deps, call } = this.#held;
    const { affinity } = deps.upstream;
    const conversation = request.conversation();
    if (conversation === undefined) return undefined;
    const { accountId, keyId } = call.start;
    this.#key = affinity.keyOf(conversation, { accountId, keyId, model: request.text.model });
    return conversation.isFirst ? undefined : affinity.find(this.#key);
  }

  /** Records that a request of it was served. */
  served(destination: Destination | undefined): void {
    if (this.#key === undefined || destination === undefined) return;
    const { route, credential } = destination;
    this.#held.deps.upstream.affinity.bind(this.#key, route, credential);
  }
}

interface BeginContext {
  readonly connection: Connection;
  readonly silence: Silence | undefined;
  readonly hasAlternatives: boolean;
}

/** Reads an answer up to its first content, or to its end where it is not streamed. */
async function begin<Out extends Chunk>(
  held: Held<Out>,
  answered: OpenReply,
  { connection, silence, hasAlternatives }: BeginContext,
): Promise<Opened<Out>> {
  const { call, request, deps } = held;
  const { reply: answer, refusal } = answered;
  const { planned } = answered.destination;
  const { fallback } = planned;
  const model = modelOf(held, planned);
  connection.answered(answered);
  call.upstreamRequestId = upstreamRequestId(answer.headers);
  if (refusal !== undefined) {
    call.status = answer.status;
    call.end(CallEnding.UPSTREAM_REFUSED, refusal.error);
    const relayed = request.refusal({ ...refusal, status: answer.status }, planned);
    if (relayed instanceof GatewayError) throw relayed;
    return { ...held, planned, answer, reply: { kind: "refusal", body: relayed } };
  }
  const price = fallback?.price ?? held.price;
  if (fallback !== undefined) {
    request.answeredBy = model.key;
    call.model = model.key;
    call.priceVersion = deps.pricing.version(price);
  }
  const body = await readCompleteBody(answer, request.isStreamed(answer));
  if (body !== undefined) {
    call.answered();
    const whole = request.whole(body, planned, answer);
    return { ...held, model, price, planned, answer, reply: { kind: "whole", whole, body } };
  }
  // An adapter without streams throws here.
  const source = request.stream(planned, answer);
  const stream = new StreamReply({ call, stream: source, body: answer.body, mask: answer.mask });
  const reply: Reply<Out> = { kind: "stream", stream };
  const opened: Opened<Out> = { ...held, model, price, planned, answer, reply };
  connection.unfinished = opened;
  // Without an alternative the client gets the first event at once. A model that reasons is silent after it: from there
  // on the client gets keep-alives.
  const endsAtEvent = model.isReasoning === true || !hasAlternatives;
  if (silence !== undefined && !connection.client.isDetached) {
    await stream.readToContent(endsAtEvent, () => silence.restart());
  }
  silence?.stop();
  return opened;
}

/** How long a stream may be silent before its first content, in milliseconds. */
function firstContentMs({ isReasoning }: ModelConfig, { timeouts }: VendorConfig): number {
  return timeouts.firstContentMs ?? (isReasoning ? timeouts.firstByteMs : firstContentDefaultMs);
}

/** The tokens that the request needs at its vendor: its own, and those of the reply that it asks for. */
function contextTokens<Out extends Chunk>({ tokens, request }: Held<Out>): number {
  return tokens.typical + (request.text.maxOutputTokens ?? 0);
}

/** What the vendor may charge for an attempt that was abandoned, in nano-USD; `undefined`: nothing, or it is not known. */
function possibleCost<Out extends Chunk>(
  { tokens, call, deps }: Held<Out>,
  { planned }: Destination,
  { isSent }: FailedFacts,
): bigint | undefined {
  if (!isSent || planned.route.costs === undefined) return undefined;
  const usage = { ...noUsage, inputTokens: tokens.typical };
  return deps.pricing.vendorCost(planned.route, usage, call.startMs);
}

const noUsage = { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 };

/** Ends an attempt whose vendor sends no content in time. Keep-alives do not restart it. */
class Silence {
  readonly #connection: Connection;
  #timer: NodeJS.Timeout | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  start(afterMs: number): void {
    this.stop();
    this.#timer = setTimeout(endSilent, afterMs, this.#connection.client);
  }

  /** An event has come that is no keep-alive. */
  restart(): void {
    this.#timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function endSilent(client: DisconnectHandler): void {
  // Whoever has left waits for the usage only.
  if (client.isDetached) return;
  client.stopAttempt(new HttpFailure("timeout", "no content within timeouts.first_byte"));
}

function requestFor<Out extends Chunk>(
  held: Held<Out>,
  planned: PlannedRoute,
  connection: Connection,
) {
  const { routes, first, request } = held;
  const isFirst = planned.route === routes[0]?.route;
  const prepared: PreparedCall =
    (isFirst && first) || request.prepare(modelOf(held, planned), planned);
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
