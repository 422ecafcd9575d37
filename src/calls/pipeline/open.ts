/** Makes the attempts of a call until one vendor answers with content, and records every attempt. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { VendorReply } from "../../provider/reply.ts";
import { upstreamRequestId } from "../adapters/headers.ts";
import { firstContentMs as firstContentDefaultMs } from "../../core/limits.ts";
import type { ModelConfig, RetryConfig, VendorConfig } from "../../config/config.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import type {
  AttemptPlan,
  AttemptPlanOptions,
  Binding,
  Destination,
  RequestAmount,
} from "../../routing/attempt-plan.ts";
import type { OperationName } from "../../provider/vendor.ts";
import { tryRoutes, type FailedFacts, type TryOptions } from "../../routing/try-routes.ts";
import type { OpenReply } from "../../routing/attempt.ts";
import type { AttemptRequest } from "../../routing/upstream.ts";
import { isContextRefusal } from "../../routing/upstream-refusal.ts";
import type { Chunk, WholeReply } from "./adapter.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { PreparedCall } from "../../routing/prepared-call.ts";
import { DisconnectHandler } from "./disconnect.ts";
import { tooLong } from "./failures.ts";
import type { Held } from "./hold.ts";
import { readCompleteBody, StreamReply } from "./reply.ts";
import { inputOnly } from "./metering.ts";

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
  /** The route of the last attempt; `undefined`: none was made. */
  asked: PlannedRoute | undefined;
  /** A stream of which nothing was delivered yet: what a client that disconnects then is charged for. */
  unfinished: object | undefined;
  #open: OpenReply | undefined;
  #isSent = false;

  constructor({ call, context, deps }: Pick<Held<Chunk>, "call" | "context" | "deps">) {
    this.client = new DisconnectHandler({ call, client: context.signal, detached: deps.detached });
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

  /** Releases the vendor's slot, and stops a vendor whose reply has not ended. @param usage what the vendor reported;
   * default: not known */
  close(usage?: Usage): void {
    this.client.end();
    if (this.#open === undefined) return;
    if (usage !== undefined) this.#open.usedTokens = usage.inputTokens + usage.outputTokens;
    this.#open.close();
  }
}

/** Makes attempts until a vendor answers with content. @throws GatewayError */
export async function open<Out extends Chunk>(
  held: Held<Out>,
  connection: Connection,
): Promise<Opened<Out>> {
  const attempts = new CallAttempts(held, connection);
  try {
    const opened = await tryRoutes(held.deps.upstream, attempts.plan, attempts);
    if (opened.reply.kind !== "refusal") attempts.served();
    return opened;
  } finally {
    attempts.silence?.stop();
  }
}

const onlyOnce: RetryConfig = { attempts: 1, withinMs: 0 };

/** The model that takes the call on a route. */
function modelOf<Out extends Chunk>({ model }: Held<Out>, { fallback }: PlannedRoute): ModelConfig {
  return fallback?.model ?? model;
}

/** The attempts of one call: where they may go, what they send, and what becomes of their answers. One object, because
 * every call has one. */
class CallAttempts<Out extends Chunk> implements TryOptions<Opened<Out>>, AttemptPlanOptions {
  silence: Silence | undefined;
  plan: AttemptPlan;
  readonly #held: Held<Out>;
  readonly #connection: Connection;
  #nextModel = 0;
  /** The conversation of the call, once it was looked for. */
  #conversation: string | undefined;

  constructor(held: Held<Out>, connection: Connection) {
    this.#held = held;
    this.#connection = connection;
    this.plan = held.deps.upstream.attempts(held.routes, this);
    if (this.#isTimed()) this.silence = new Silence(connection);
  }

  /** Whether silence is timed here. The HTTP library ends a whole reply up to a second late, which matters only where
   * another route waits. */
  #isTimed(): boolean {
    const { request } = this.#held;
    if (!request.isRepeatable) return false;
    return request.text.stream || (request.operation === undefined && this.plan.hasAlternatives);
  }

  get operation(): OperationName | undefined {
    return this.#held.request.operation;
  }

  get signal(): CancelSignal {
    return this.#held.context.signal;
  }

  /** Those of the model whose routes are tried next. */
  get retry(): RetryConfig | undefined {
    const { request, routes, fallbacks, model } = this.#held;
    const { preferences } = request.wishes;
    if (preferences?.allowFallbacks === false && preferences.order === undefined) return onlyOnce;
    const [first] = (this.#nextModel === 0 ? routes : fallbacks[this.#nextModel - 1]) ?? [];
    return (first?.fallback?.model ?? model).retry;
  }

  get hasFallbacks(): boolean {
    return this.#nextModel < this.#held.fallbacks.length;
  }

  get isRepeatable(): boolean {
    return this.#held.request.isRepeatable;
  }

  tokens(): RequestAmount {
    const { tokens, request, plan } = this.#held;
    return {
      typical: tokens.typical + (request.text.maxOutputTokens ?? 0),
      most: tokens.expected + plan.maxTokens,
    };
  }

  /** Where the conversation of the call is; `undefined`: it has none yet. Nothing is looked up for models with a single
   * candidate. */
  binding(): Binding | undefined {
    const { request, deps, call } = this.#held;
    const { affinity } = deps.upstream;
    const conversation = request.conversation();
    if (conversation === undefined) return undefined;
    const { accountId, keyId } = call.start;
    this.#conversation = affinity.keyOf(conversation, {
      accountId,
      keyId,
      model: request.text.model,
    });
    return conversation.isFirst ? undefined : affinity.find(this.#conversation);
  }

  /** Records where the conversation of the call is now. */
  served(): void {
    const { destination } = this.#connection;
    if (this.#conversation === undefined || destination === undefined) return;
    const { route, credential } = destination;
    this.#held.deps.upstream.affinity.bind(this.#conversation, route, credential);
  }

  nextPlan(): AttemptPlan | undefined {
    const routes = this.#held.fallbacks[this.#nextModel++];
    return routes && (this.plan = this.#held.deps.upstream.attempts(routes, this));
  }

  callFor({ planned, route }: Destination): AttemptRequest {
    const held = this.#held;
    const connection = this.#connection;
    const { call, routes, first, request } = held;
    call.attempting(route.vendor);
    connection.asked = planned;
    const { config } = route.owner;
    this.silence?.start(
      request.text.stream
        ? firstContentMs(modelOf(held, planned), config)
        : config.timeouts.firstByteMs,
    );
    const isFirst = planned.route === routes[0]?.route;
    const prepared: PreparedCall =
      (isFirst && first) || request.prepare(modelOf(held, planned), planned);
    connection.dropped = prepared.dropped;
    const { headers, body, send } = prepared;
    const isReadToEnd = request.isReadToEnd && planned.detachedReadMs > 0;
    const isWholeText = !request.text.stream && request.operation === undefined;
    return {
      dialect: planned.dialect ?? Dialect.UNSPECIFIED,
      model: planned.route.model,
      query: planned.dialect === request.dialect ? request.query : "",
      headers,
      body,
      send,
      stream: request.text.stream,
      signal: connection.client.signalFor(
        isReadToEnd ? Number.POSITIVE_INFINITY : planned.detachedReadMs,
        isWholeText,
      ),
    };
  }

  /** Reads an answer up to its first content, or to its end where it is not streamed. */
  async begin(answered: OpenReply): Promise<Opened<Out>> {
    const held = this.#held;
    const connection = this.#connection;
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
      if (relayed instanceof GatewayError) {
        const isTooLong = request.operation === undefined && isContextRefusal(refusal);
        throw isTooLong ? await this.#tooLong(relayed, planned) : relayed;
      }
      return { ...held, planned, answer, reply: { kind: "refusal", body: relayed } };
    }
    const price = fallback?.price ?? held.price;
    if (fallback !== undefined) {
      request.answeredBy = model.key;
      call.model = model.key;
      call.priceVersion = deps.pricing.version(price);
    }
    if (!request.text.stream) this.silence?.stop();
    const body = await readCompleteBody(answer, request);
    if (body !== undefined) {
      call.answered();
      const whole = request.whole(body, planned, answer);
      return { ...held, model, price, planned, answer, reply: { kind: "whole", whole, body } };
    }
    // An adapter without streams throws here.
    const source = request.stream(planned, answer, price);
    const stream = new StreamReply({
      call,
      stream: source,
      body: answer.body,
      addedTextBytes: (event, knownBytes) =>
        request.addedTextBytes(event, { planned, answer }, knownBytes),
    });
    answered.countEvents(stream);
    const reply: Reply<Out> = { kind: "stream", stream };
    const opened: Opened<Out> = { ...held, model, price, planned, answer, reply };
    connection.unfinished = opened;
    // Without an alternative the client gets the first event at once. A model that reasons is silent after it: from
    // there on the client gets keep-alives.
    const endsAtEvent = model.isReasoning === true || !this.plan.hasAlternatives;
    const { silence } = this;
    if (silence !== undefined && !connection.client.isDetached) {
      await stream.readToContent(endsAtEvent, () => silence.restart());
    }
    silence?.stop();
    return opened;
  }

  async #tooLong(refused: GatewayError, { route }: PlannedRoute): Promise<GatewayError> {
    const { request, model, tokens } = this.#held;
    const { inputTokens } = await tokens.estimate({
      ...{ reported: undefined, reply: undefined, isCautious: false },
      vendorModel: route.model,
    });
    const { maxOutputTokens } = request.text;
    const { contextTokens } = tokens;
    const facts = { model: model.key, inputTokens, maxOutputTokens, contextTokens };
    return tooLong({ ...facts, dialect: request.dialect }, refused);
  }

  hasFailed({ reply }: Opened<Out>): boolean {
    return reply.kind === "stream" && reply.stream.hasFailedEarly;
  }

  onFailed(destination: Destination, failed: FailedFacts): void {
    this.#connection.abandoned();
    this.#held.call.failed(destination, failed, possibleCost(this.#held, destination, failed));
  }
}

/** How long a stream may be silent before its first content, in milliseconds. */
function firstContentMs({ isReasoning }: ModelConfig, { timeouts }: VendorConfig): number {
  return timeouts.firstContentMs ?? (isReasoning ? timeouts.firstByteMs : firstContentDefaultMs);
}

/** What the vendor may charge for an attempt that was abandoned, in nano-USD; `undefined`: nothing, or it is not known. */
function possibleCost<Out extends Chunk>(
  { tokens, call, deps }: Held<Out>,
  { planned }: Destination,
  { isSent }: FailedFacts,
): bigint | undefined {
  if (!isSent || planned.route.costs === undefined) return undefined;
  const usage = inputOnly(tokens.typical);
  return deps.pricing.vendorCost(planned.route, usage, call.startMs);
}

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
