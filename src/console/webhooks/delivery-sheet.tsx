/** One delivery in detail: its body, and each attempt with the response. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { RotateCw } from "lucide-react";
import {
  type Attempt,
  AttemptOutcome,
  type Delivery,
  WebhookStatus,
} from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../common/language.tsx";
import { durationText } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Facts, Skeleton } from "../ui/card.tsx";
import { CodeBlock, Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { useDone } from "../ui/form.tsx";
import { Badge, ErrorNote, Time } from "../ui/show.tsx";
import { useErrorToast } from "../ui/toast.tsx";
import { DeliveryBadge } from "./delivery-list.tsx";
import { millis } from "../common/contract.ts";

/** How often an open delivery is fetched, in milliseconds. */
const refreshMs = 2_000;

/** The details of a delivery; open while there is an id. */
export function DeliverySheet({
  deliveryId,
  isForOperator,
  onClose,
}: {
  deliveryId: string | undefined;
  /** Whether it shows the account. */
  isForOperator: boolean;
  onClose: () => void;
}) {
  const { webhooks: text } = useText();
  const { data, error } = useQuery(
    WebhookService.method.getDelivery,
    deliveryId === undefined ? skipToken : { deliveryId },
    { refetchInterval: refreshMs },
  );
  const delivery = data?.delivery;
  return (
    <Sheet
      isOpen={deliveryId !== undefined}
      onClose={onClose}
      title={text.sheet}
      actions={
        delivery !== undefined &&
        delivery.status !== WebhookStatus.PROGRESS && <ResendButton delivery={delivery} />
      }
    >
      <ErrorNote error={error} />
      {error === null && delivery === undefined && <Skeleton className="h-64" />}
      {delivery !== undefined && (
        <div className="flex flex-col gap-7">
          <About delivery={delivery} isForOperator={isForOperator} />
          <section>
            <h3 className="mb-3 font-semibold">{text.body}</h3>
            <CodeBlock label={text.body} code={data?.body ?? ""} />
          </section>
          {(data?.attempts ?? []).toReversed().map((attempt) => (
            <AttemptView key={attempt.number} attempt={attempt} />
          ))}
        </div>
      )}
    </Sheet>
  );
}

function ResendButton({ delivery: { deliveryId } }: { delivery: Delivery }) {
  const { webhooks: text } = useText();
  const done = useDone();
  const resend = useMutation(WebhookService.method.resendDelivery, {
    onSuccess: () => done(text.resent),
    onError: useErrorToast(),
  });
  return (
    <Button isBusy={resend.isPending} onClick={() => resend.mutate({ deliveryId })}>
      <RotateCw aria-hidden="true" />
      {text.resend}
    </Button>
  );
}

function About({ delivery, isForOperator }: { delivery: Delivery; isForOperator: boolean }) {
  const { webhooks: text, common, tasks } = useText();
  return (
    <Facts
      rows={[
        [common.status, <DeliveryBadge key="state" state={delivery.state} />],
        ...(isForOperator
          ? [[common.account, <Id key="account" isWhole value={delivery.accountId} />] as const]
          : []),
        [text.event, text.events[delivery.status]],
        [text.created, <Time key="time" time={delivery.createTime} />],
        [
          text.endpoint,
          <span key="url" className="break-all">
            {delivery.url}
          </span>,
        ],
        [tasks.task, <Id key="task" isWhole value={delivery.taskId} />],
        ...(delivery.callbackId === ""
          ? []
          : [[tasks.callback, <Id key="callback" isWhole value={delivery.callbackId} />] as const]),
        ...(delivery.nextAttemptTime === undefined
          ? []
          : [[text.next, <Time key="next" time={delivery.nextAttemptTime} />] as const]),
      ]}
    />
  );
}

function AttemptView({ attempt }: { attempt: Attempt }) {
  const { webhooks: text } = useText();
  const { number, outcome, status, startTime, totalDuration, answer } = attempt;
  const isGood = outcome === AttemptOutcome.DELIVERED;
  return (
    <section className="rounded-xl border border-line">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3">
        <h3 className="font-semibold">{text.attempt(number)}</h3>
        <Badge tone={isGood ? "good" : "bad"}>
          {status !== undefined && `${status} · `}
          {text.outcomes[outcome]}
        </Badge>
        <span className="ml-auto text-xs text-muted">
          <Time time={startTime} /> · {durationText(millis(totalDuration))}
        </span>
      </div>
      {answer !== "" && (
        <div className="border-t border-line p-4">
          <h4 className="mb-2 text-xs text-muted">{text.answer}</h4>
          <CodeBlock label={text.answer} code={answer} />
        </div>
      )}
    </section>
  );
}
