/**
 * Makes the attempts of a call until one vendor answers with content, and records every attempt.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { ModelConfig, RetryConfig } from "../../config/config.ts";
import { pause } from "../../core/async.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { VendorReply } from "../../provider/reply.ts";
import type { FailedAttempt, OpenReply } from "../../routing/attempt.ts";
import { conversationKey } from "../../routing/affinity.ts";
import type { Destination, RequestAmount } from "../../routing/attempt-plan.ts";
import type { Attempts, AttemptStage } from "../../routing/attempts.ts";
import type { AttemptFailure } from "../../routing/breaker.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { AttemptRequest } from "../../routing/upstream.ts";
import { isContextRefusal, unusableReply } from "../../routing/upstream-refusal.ts";
import { upstreamRequestId } from "../adapters/headers.ts";
import type { Chunk, WholeReply } from "./adapter.ts";
import type { Connection } from "./connection.ts";
import { tooLong } from "./failures.ts";
import type { Held } from "./hold.ts";
import { plausibleUsage } from "./charged-usage.ts";
import { inputOnly } from "./metering.ts";
import { readCompleteBody, StreamReply } from "./reply.ts";
import { firstContentMs, Silence } from "./silence.ts";

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

/** State that the attempts of one call share. */
interface Opening<Out extends Chunk> {
  readonly held: Held<Out>;
  readonly connection: Connection;
  readonly attempts: Attempts;
  /** Whether another route, credential or model may serve the call. */
  readonly hasAlternatives: boolean;
  /** Ends silent attempts; undefined if the HTTP client does. */
  readonly silence: Silence | undefined;
}

/**
 * A usable answer. With a `failure`, its vendor failed before the first content: it is used only if
 * no other follows.
 */
interface Answered<Out extends Chunk> {
  readonly opened: Opened<Out>;
  readonly answer: OpenReply;
  readonly failure: AttemptFailure | undefined;
  readonly isSent: boolean;
  readonly error?: undefined;
}

/** Makes attempts until a vendor answers with content. @throws GatewayError of the last attempt */
export async function open<Out extends Chunk>(
  held: Held<Out>,
  connection: Connection,
): Promise<Opened<Out>> {
  const { call, context, routes, fallbacks, deps } = held;
  const hasAlternatives = fallbacks.length > 0 || deps.upstream.hasChoice(routes);
  const attempts = deps.upstream.attempts({
    stages: stagesOf(held),
    amount: new HeldAmount(held),
    isRepeatable: held.request.isRepeatable,
    conversation: hasAlternatives ? conversationOf(held) : undefined,
  });
  const silence = isSilenceTimed(held, hasAlternatives)
    ? new Silence(connection.client)
    : undefined;
  const opening: Opening<Out> = { held, connection, attempts, hasAlternatives, silence };
  let spare: Answered<Out> | undefined;
  try {
    for (;;) {
      const destination = attempts.next();
      if (destination === undefined) {
        if (spare === undefined) throw attempts.error;
        connection.answered(spare.answer);
        return spare.opened;
      }
      spare?.answer.close();
      spare = undefined;
      if (destination.delayMs > 0) await pause(destination.delayMs, context.signal);
      const tried = await tryOnce(opening, destination);
      const { failure, error } = tried;
      if (failure === undefined) {
        if (error !== undefined) throw error;
        // Without an alternative there is one route only, so no record of the choice is needed.
        if (hasAlternatives) call.answeredBy(destination);
        return tried.opened;
      }
      attempts.failed(destination, { ...tried, failure });
      // Nothing was sent. The caller gets the error of the routes that can serve the request.
      if (failure === "unfit") continue;
      connection.abandoned();
      call.trace?.attemptFailed(failure);
      call.failed(destination, { failure, error }, possibleCost(held, destination, tried.isSent));
      if (error === undefined) spare = tried;
    }
  } finally {
    silence?.stop();
  }
}

/** Makes one attempt, up to its first content. */
async function tryOnce<Out extends Chunk>(
  opening: Opening<Out>,
  destination: Destination,
): Promise<Answered<Out> | FailedAttempt> {
  const { held, attempts } = opening;
  const { upstream } = held.deps;
  const reserving = upstream.reserve(destination, attempts.amount);
  const attempt = reserving instanceof Promise ? await reserving : reserving;
  if (attempt.error !== undefined) return attempt;
  let request: AttemptRequest;
  try {
    request = requestFor(opening, destination);
  } catch (error) {
    attempt.usedTokens = 0;
    attempt.close();
    const isOfRequest = error instanceof GatewayError && error.code === ErrorCode.INVALID_REQUEST;
    // The first route can serve the request, or it would have been refused before its hold.
    if (!isOfRequest || held.first === undefined) throw error;
    return { error, failure: "unfit", isSent: false };
  }
  const answer = await upstream.send(attempt, request, held.request.operation);
  if (answer.error !== undefined) return answer;
  const { refusal } = answer;
  if (refusal !== undefined && isContextRefusal(refusal) && attempts.hasLonger(destination)) {
    answer.close();
    return { error: refusal.error, failure: "context", isSent: false };
  }
  try {
    if (refusal !== undefined) answer.succeeded();
    const opened = await readAnswer(opening, answer);
    const { reply } = opened;
    if (hasFailed(reply)) {
      const { failure } = answer.failed(unusableReply("an error before its first content"));
      // A job may be running: another attempt would run it twice.
      const isFinal = !held.request.isRepeatable;
      return { opened, answer, failure: isFinal ? undefined : failure, isSent: true };
    }
    if (refusal === undefined) answer.succeeded();
    return { opened, answer, failure: undefined, isSent: true };
  } catch (error) {
    const failed = answer.failed(error);
    answer.close();
    return failed;
  }
}

/** Whether the vendor reported a failure under a status of success, before any content. */
function hasFailed<Out extends Chunk>(reply: Reply<Out>): boolean {
  if (reply.kind === "stream") return reply.stream.hasFailedEarly;
  return reply.kind === "whole" && reply.whole.isFailed === true;
}

/**
 * The request for a destination. @throws GatewayError INVALID_REQUEST if its style cannot carry the
 * request
 */
function requestFor<Out extends Chunk>(
  { held, connection, silence }: Opening<Out>,
  destination: Destination,
): AttemptRequest {
  const { planned, route } = destination;
  const { call, routes, first, request } = held;
  const isFirst = planned.route === routes[0]?.route;
  const prepared = (isFirst && first) || request.prepare(modelOf(held, planned), planned);
  call.attempting(route.vendor);
  call.trace?.attempting(destination, request);
  connection.asked = planned;
  const { config } = route.owner;
  silence?.start(
    request.text.stream
      ? firstContentMs(modelOf(held, planned), config)
      : config.timeouts.firstByteMs,
  );
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

/** Reads a reply up to its first content, or to its end if it is not streamed. */
async function readAnswer<Out extends Chunk>(
  { held, connection, hasAlternatives, silence }: Opening<Out>,
  answered: OpenReply,
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
    if (relayed instanceof GatewayError) {
      const isTooLong = request.operation === undefined && isContextRefusal(refusal);
      throw isTooLong ? await tooLongFor(held, relayed, planned) : relayed;
    }
    return { ...held, planned, answer, reply: { kind: "refusal", body: relayed } };
  }
  const price = fallback?.price ?? held.price;
  if (fallback !== undefined) {
    request.answeredBy = model.key;
    call.model = model.key;
    call.priceVersion = deps.pricing.version(price);
  }
  const priced = { ...held, model, price, planned };
  request.plausible = (usage, text) => plausibleUsage(priced, usage, text);
  if (!request.text.stream) silence?.stop();
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
  const reply: Reply<Out> = { kind: "stream", stream };
  const opened: Opened<Out> = { ...held, model, price, planned, answer, reply };
  connection.unfinished = opened;
  // Without an alternative the client gets the first event at once. A model that reasons is silent
  // after that event; the client then gets keep-alives.
  const endsAtEvent = model.isReasoning === true || !hasAlternatives;
  if (silence !== undefined && !connection.client.isDetached) {
    await stream.readToContent(endsAtEvent, () => silence.restart());
  }
  silence?.stop();
  return opened;
}

/** Explains a vendor's refusal of a request that is too long, with the gateway's own figures. */
async function tooLongFor<Out extends Chunk>(
  { request, model, tokens }: Held<Out>,
  refused: GatewayError,
  { route }: PlannedRoute,
): Promise<GatewayError> {
  const { inputTokens } = await tokens.estimate({
    reported: undefined,
    reply: undefined,
    isCautious: false,
    vendorModel: route.model,
  });
  return tooLong(
    {
      model: model.key,
      inputTokens,
      maxOutputTokens: request.text.maxOutputTokens,
      contextTokens: tokens.contextTokens,
      dialect: request.dialect,
    },
    refused,
  );
}

/** The model that takes the call on a route. */
function modelOf<Out extends Chunk>({ model }: Held<Out>, { fallback }: PlannedRoute): ModelConfig {
  return fallback?.model ?? model;
}

const onlyOnce: RetryConfig = { attempts: 1, withinMs: 0 };

/**
 * The routes of the model, then of each fallback model, each with its model's rules for retries.
 */
function stagesOf<Out extends Chunk>({
  request,
  routes,
  fallbacks,
  model,
}: Held<Out>): AttemptStage[] {
  const { preferences } = request.wishes;
  const isOnce = preferences?.allowFallbacks === false && preferences.order === undefined;
  return [routes, ...fallbacks].map((each) => ({
    routes: each,
    retry: isOnce ? onlyOnce : (each[0]?.fallback?.model ?? model).retry,
  }));
}

type Measured = Pick<Held<Chunk>, "tokens" | "plan"> & {
  readonly request: Pick<Held<Chunk>["request"], "text">;
};

/** The tokens of a held request with its reply. */
class HeldAmount implements RequestAmount {
  readonly #held: Measured;

  constructor(held: Measured) {
    this.#held = held;
  }

  get typical(): number {
    const { tokens, request } = this.#held;
    return tokens.typical + (request.text.maxOutputTokens ?? 0);
  }

  get most(): number {
    const { tokens, plan } = this.#held;
    return tokens.expected + plan.maxTokens;
  }
}

/** The key of the conversation that a call belongs to; undefined if none is recognised. */
function conversationOf<Out extends Chunk>({ request, call }: Held<Out>): string | undefined {
  const id = request.conversation();
  if (id === undefined) return undefined;
  const { accountId, keyId } = call.start;
  return conversationKey(id, { accountId, keyId, model: request.text.model });
}

/**
 * Whether silence is timed here. The HTTP client ends a whole reply up to a second late, which
 * matters only if another route may serve the call.
 */
function isSilenceTimed<Out extends Chunk>(
  { request }: Held<Out>,
  hasAlternatives: boolean,
): boolean {
  if (!request.isRepeatable) return false;
  return request.text.stream || (request.operation === undefined && hasAlternatives);
}

/**
 * Returns the maximum that the vendor may charge for an abandoned attempt, in nano-USD; undefined
 * if nothing or unknown.
 */
function possibleCost<Out extends Chunk>(
  { tokens, call, deps }: Held<Out>,
  { planned }: Destination,
  isSent: boolean,
): bigint | undefined {
  if (!isSent || planned.route.costs === undefined) return undefined;
  const usage = inputOnly(tokens.typical);
  return deps.pricing.vendorCost(planned.route, usage, call.startMs);
}
