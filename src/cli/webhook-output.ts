/** The output of `uas webhook …`: messages of the contract in the words of the command line. */
import {
  AddressClassSchema,
  AttemptOutcomeSchema,
  type Attempt,
  type Delivery,
  DeliveryStateSchema,
  type Endpoint,
  EndpointStateSchema,
  type WebhookSecret,
  WebhookStatusSchema,
} from "../../gen/uas/webhook/v1/webhook_pb.ts";
import type { GetDeliveryResponse } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import type { Output } from "./context.ts";
import { cell, facts, table } from "./output.ts";
import { enumWord, orNull, timeText, millis } from "./values.ts";

/** The signing secrets of an account. */
export function secretFacts(secret: WebhookSecret | undefined): Output {
  const json = {
    accountId: secret?.accountId ?? "",
    secret: secret?.current ?? "",
    otherSecret: orNull(secret?.other ?? ""),
    promoted: secret?.isPromoted ?? true,
    rotationEndsAt: timeText(secret?.rotationEndTime),
  };
  return { json, text: facts(json) };
}

/** A list of deliveries; a list over all accounts names each one's account. */
export function deliveryList(
  deliveries: readonly Delivery[],
  { isOfAll }: { readonly isOfAll: boolean },
): Output {
  const json = deliveries.map(deliveryJson);
  const head = [
    ...(isOfAll ? ["ACCOUNT"] : []),
    "CREATED",
    "DELIVERY ID",
    "CALLBACK ID",
    "STATUS",
    "STATE",
    "ATTEMPTS",
    "NEXT",
    "URL",
  ];
  const rows = json.map((delivery) =>
    [
      ...(isOfAll ? [delivery.accountId] : []),
      delivery.createdAt,
      delivery.deliveryId,
      delivery.callbackId,
      delivery.status,
      delivery.state,
      delivery.attempts,
      delivery.nextAttemptAt,
      delivery.url,
    ].map(cell),
  );
  return { json, text: table(head, rows) };
}

/** One delivery in full. */
export function deliveryFacts({ delivery, attempts, body }: GetDeliveryResponse): Output {
  const about = delivery === undefined ? {} : deliveryJson(delivery);
  const tries = attempts.map(attemptJson);
  const head = [
    "#",
    "STARTED",
    "OUTCOME",
    "STATUS",
    "ADDRESS",
    "DNS",
    "CONNECT",
    "TLS",
    "FIRST BYTE",
    "TOTAL ms",
    "ANSWER",
  ];
  const rows = tries.map((attempt) =>
    [
      attempt.number,
      attempt.startedAt,
      attempt.outcome,
      attempt.status,
      attempt.addressClass,
      attempt.dnsMs,
      attempt.connectMs,
      attempt.tlsMs,
      attempt.firstByteMs,
      attempt.totalMs,
      attempt.answer.slice(0, 60),
    ].map(cell),
  );
  const list = tries.length === 0 ? "no attempts yet" : table(head, rows);
  const text = `${facts({ ...about, body })}\n\n${list}`;
  return { json: { ...about, body, attemptList: tries }, text };
}

/** The number of deliveries that are sent again. */
export function sentAgain(deliveries: number): Output {
  return { json: { deliveries }, text: `${deliveries} are sent again` };
}

/** A list of endpoints. */
export function endpointList(endpoints: readonly Endpoint[]): Output {
  const json = endpoints.map((endpoint) => ({
    origin: endpoint.origin,
    state: enumWord(EndpointStateSchema, endpoint.state),
    failures: endpoint.failureCount,
    waiting: endpoint.waitingCount,
    failingSince: timeText(endpoint.failingSince),
    nextProbeAt: timeText(endpoint.nextProbeTime),
    lastSuccessAt: timeText(endpoint.successTime),
    lastFailureAt: timeText(endpoint.failureTime),
  }));
  const head = [
    "ORIGIN",
    "STATE",
    "FAILURES",
    "WAITING",
    "FAILING SINCE",
    "NEXT PROBE",
    "LAST SUCCESS",
    "LAST FAILURE",
  ];
  return {
    json,
    text: table(
      head,
      json.map((endpoint) => Object.values(endpoint).map(cell)),
    ),
  };
}

/** A delivery in the words of the command line. */
export function deliveryJson(delivery: Delivery) {
  return {
    deliveryId: delivery.deliveryId,
    accountId: delivery.accountId,
    taskId: delivery.taskId,
    callbackId: delivery.callbackId,
    status: enumWord(WebhookStatusSchema, delivery.status),
    progress: delivery.progress,
    sequence: delivery.sequence,
    url: delivery.url,
    state: enumWord(DeliveryStateSchema, delivery.state),
    attempts: delivery.attemptCount,
    createdAt: timeText(delivery.createTime),
    nextAttemptAt: timeText(delivery.nextAttemptTime),
    endedAt: timeText(delivery.endTime),
    test: delivery.isTest,
  };
}

function attemptJson(attempt: Attempt) {
  return {
    number: attempt.number,
    startedAt: timeText(attempt.startTime),
    outcome: enumWord(AttemptOutcomeSchema, attempt.outcome),
    status: attempt.status ?? null,
    addressClass: enumWord(AddressClassSchema, attempt.addressClass),
    dnsMs: millis(attempt.dnsDuration),
    connectMs: millis(attempt.connectDuration),
    tlsMs: millis(attempt.tlsDuration),
    firstByteMs: millis(attempt.firstByteDuration),
    totalMs: millis(attempt.totalDuration),
    answer: attempt.answer,
  };
}
