/** One delivery in detail: its body, and each attempt with the response. */
import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { RotateCw, Webhook } from "lucide-react";
import {
  type Attempt,
  AttemptOutcome,
  type Delivery,
  DeliveryState,
  WebhookStatus,
} from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { accountColumn, useAccountNames } from "../accounts/account.tsx";
import { millis } from "../common/contract.ts";
import { type Texts, useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import { type DeliverySearch, deliveryStates } from "../common/search.ts";
import { durationText } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Facts, Skeleton } from "../ui/card.tsx";
import { CodeBlock, Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { useDone } from "../ui/form.tsx";
import { Badge, ErrorNote, Time, type Tone, Truncated } from "../ui/show.tsx";
import { agoColumn, type Column, QueryTable, RowTime } from "../ui/table.tsx";
import { useErrorToast } from "../ui/toast.tsx";

/** Refresh interval of an open delivery. */
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

/** Deliveries of one page of the list. */
const pageSize = 50;

/** The list of deliveries, fetched page by page. */
export function DeliveryList({
  accountId,
  search,
  onOpen,
}: {
  /** Empty: all accounts; for operators. */
  accountId: string;
  search: DeliverySearch;
  onOpen: (deliveryId: string) => void;
}) {
  const texts = useText();
  const { webhooks: text } = texts;
  const query = useInfiniteQuery(
    WebhookService.method.listDeliveries,
    {
      accountId,
      pageSize,
      pageToken: "",
      taskId: search.task ?? "",
      origin: search.origin ?? "",
      state: search.state === undefined ? DeliveryState.UNSPECIFIED : states[search.state],
    },
    {
      ...paged,
      refetchInterval: 5_000,
    },
  );
  const accountNames = useAccountNames(accountId === "");
  const columns = deliveryColumns({ texts, onOpen, ...(accountId === "" && { accountNames }) });
  const { state, task, origin } = search;
  const isFiltered = state !== undefined || task !== undefined || origin !== undefined;
  return (
    <QueryTable
      query={query}
      label={text.deliveries}
      columns={columns}
      rows={query.data?.pages.flatMap(({ deliveries }) => deliveries)}
      keyOf={({ deliveryId }) => deliveryId}
      onOpen={({ deliveryId }) => onOpen(deliveryId)}
      isOpen={({ deliveryId }) => deliveryId === search.delivery}
      empty={
        isFiltered ? (
          <Empty title={text.noMatch} />
        ) : (
          <Empty icon={<Webhook />} title={text.empty} hint={text.emptyHint} />
        )
      }
    />
  );
}

function deliveryColumns({
  texts: { webhooks: text, common },
  onOpen,
  accountNames,
}: {
  texts: Texts;
  onOpen: (deliveryId: string) => void;
  /** The names of accounts by their id, for a list of several accounts. */
  accountNames?: ReadonlyMap<string, string>;
}): Column<Delivery>[] {
  return [
    {
      id: "time",
      title: text.created,
      cell: ({ createTime, deliveryId }) => (
        <RowTime
          time={createTime}
          label={text.open(deliveryId)}
          onOpen={() => onOpen(deliveryId)}
        />
      ),
    },
    { id: "state", title: common.status, cell: ({ state }) => <DeliveryBadge state={state} /> },
    ...(accountNames === undefined
      ? []
      : [accountColumn({ title: common.account, names: accountNames })]),
    {
      id: "event",
      title: text.event,
      cell: ({ status, isTest }) => (
        <span className="flex items-center gap-2">
          {text.events[status]}
          {isTest && (
            <Badge isPlain tone="neutral">
              {text.test}
            </Badge>
          )}
        </span>
      ),
    },
    {
      id: "url",
      title: text.endpoint,
      from: "md",
      cell: ({ url }) => <Truncated text={url} className="max-w-64" />,
    },
    {
      id: "attempts",
      title: text.attempts,
      isNumber: true,
      from: "sm",
      cell: ({ attemptCount }) => attemptCount,
    },
    agoColumn({
      id: "next",
      title: text.next,
      from: "lg",
      time: ({ nextAttemptTime }) => nextAttemptTime,
    }),
  ];
}

const tones: Readonly<Record<DeliveryState, Tone>> = {
  [DeliveryState.UNSPECIFIED]: "neutral",
  [DeliveryState.PENDING]: "info",
  [DeliveryState.SENDING]: "info",
  [DeliveryState.DELIVERED]: "good",
  [DeliveryState.FAILED]: "bad",
  [DeliveryState.DROPPED]: "neutral",
  [DeliveryState.PARKED]: "warn",
};

/** The state of a delivery. */
function DeliveryBadge({ state }: { state: DeliveryState }) {
  const { webhooks: text } = useText();
  return <Badge tone={tones[state] ?? "neutral"}>{text.states[state]}</Badge>;
}

/** The states by their words in addresses. */
export const states: Readonly<Record<(typeof deliveryStates)[number], DeliveryState>> = {
  pending: DeliveryState.PENDING,
  sending: DeliveryState.SENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
  dropped: DeliveryState.DROPPED,
  parked: DeliveryState.PARKED,
};
