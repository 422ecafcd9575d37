/** Deliveries of webhooks with their filters. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { RotateCw } from "lucide-react";
import { type ReactNode, useState } from "react";
import {
  type Attempt,
  AttemptOutcome,
  type Delivery,
  WebhookStatus,
} from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { millis } from "../common/contract.ts";
import { useText } from "../common/language.tsx";
import { defined, type DeliverySearch, deliveryStates, hasFilters } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { durationText, timestampOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Facts, Skeleton } from "../ui/card.tsx";
import { CodeBlock, Id } from "../ui/code.tsx";
import { Confirm, Sheet } from "../ui/dialog.tsx";
import { FilterBar, FilterField, FilterSelect } from "../ui/filter-bar.tsx";
import { useDone } from "../ui/form.tsx";
import { Badge, ErrorNote, Time } from "../ui/show.tsx";
import { useErrorToast } from "../ui/toast.tsx";
import { DeliveryBadge, DeliveryList, states } from "./delivery-list.tsx";

/** The deliveries of the own account, with the filters in the address. */
export function Deliveries() {
  const search = useSearch({ from: "/inside/webhooks" });
  const navigate = useNavigate({ from: "/webhooks" });
  const accountId = useAccountId();
  return (
    <DeliveryCard
      accountId={accountId}
      search={search}
      onSearch={(next) => void navigate({ search: next, replace: true })}
    />
  );
}

/** The deliveries of one account or of all: filters, list and details. */
export function DeliveryCard({
  accountId,
  search,
  onSearch: set,
  accountFilter,
}: {
  /** Empty: all accounts; for operators. */
  accountId: string;
  search: DeliverySearch;
  onSearch: (search: DeliverySearch) => void;
  /** For operators: chooses the account. Default: there is one only. */
  accountFilter?: ReactNode;
}) {
  const { webhooks: text } = useText();
  const { delivery, ...filters } = search;
  return (
    <Card>
      <CardHead
        title={text.deliveries}
        hint={text.deliveriesHint}
        actions={accountId !== "" && <ResendFailed accountId={accountId} />}
      />
      <DeliveryFilters filters={filters} onFilter={set}>
        {accountFilter}
      </DeliveryFilters>
      <DeliveryList
        accountId={accountId}
        search={search}
        onOpen={(id) => set({ ...filters, delivery: id })}
      />
      <DeliverySheet
        deliveryId={delivery}
        isForOperator={accountFilter !== undefined}
        onClose={() => set(filters)}
      />
    </Card>
  );
}

/** The filters of deliveries, without the one that is open. */
type Filters = Omit<DeliverySearch, "delivery">;

function DeliveryFilters({
  filters,
  onFilter,
  children,
}: {
  filters: Filters;
  onFilter: (filters: Filters) => void;
  /** More filters. */
  children?: ReactNode;
}) {
  const { webhooks: text, common } = useText();
  const set = (change: { [Name in keyof Filters]: Filters[Name] | undefined }): void =>
    onFilter(defined({ ...filters, ...change }));
  return (
    <FilterBar
      label={text.deliveries}
      isBelowHead
      onClear={hasFilters(filters) ? () => onFilter({}) : undefined}
    >
      <FilterSelect
        label={common.status}
        any={text.anyState}
        value={filters.state}
        choices={deliveryStates.map((value) => ({
          value,
          label: text.states[states[value]] ?? "",
        }))}
        onChoose={(state) => set({ state })}
      />
      {children}
      <FilterField
        label={text.endpoint}
        value={filters.origin}
        onChoose={(value) => set({ origin: value && originOf(value) })}
        className="sm:w-52"
      />
      <FilterField
        label={text.taskId}
        value={filters.task}
        onChoose={(task) => set({ task })}
        className="sm:w-52"
      />
    </FilterBar>
  );
}

/** The origin of an endpoint, from whatever was pasted: a callback URL, or a host without its scheme. */
function originOf(typed: string): string {
  const url = URL.parse(typed) ?? URL.parse(`https://${typed}`);
  return url === null || url.origin === "null" ? typed : url.origin;
}

/** How far back failed deliveries are resent, in milliseconds. */
const resendMs = 7 * 86_400_000;

function ResendFailed({ accountId }: { accountId: string }) {
  const { webhooks: text } = useText();
  const [isOpen, setOpen] = useState(false);
  const done = useDone(() => setOpen(false));
  const resend = useMutation(WebhookService.method.resendFailed, {
    onSuccess: ({ deliveryCount }) => done(text.resentCount(deliveryCount)),
  });
  return (
    <>
      <Button onClick={() => setOpen(true)}>{text.resendFailed}</Button>
      <Confirm
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        onConfirm={() => resend.mutate({ accountId, since: timestampOf(Date.now() - resendMs) })}
        title={text.resendFailedTitle}
        confirm={text.resend}
        isBusy={resend.isPending}
        error={resend.error}
      >
        {text.resendFailedText}
      </Confirm>
    </>
  );
}

// One delivery in detail: its body, and each attempt with the response.

/** How often an open delivery is fetched, in milliseconds. */
const refreshMs = 2_000;

/** The details of a delivery; open while there is an id. */
function DeliverySheet({
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
