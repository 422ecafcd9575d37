/** Every delivery, by its state. */
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { keepPreviousData, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Webhook, X } from "lucide-react";
import { useState } from "react";
import { type Delivery, DeliveryState } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { type Texts, useText } from "../language.tsx";
import { defined, deliveryStates, type DeliverySearch, oneOf } from "../search.ts";
import { useAccountId } from "../session.tsx";
import { timestampOf } from "../time.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { SelectField } from "../ui/select.tsx";
import { ErrorNote, Time } from "../ui/show.tsx";
import { type Column, MoreRows, RowButton, Table } from "../ui/table.tsx";
import { useToast } from "../ui/toast.tsx";
import { DeliveryBadge } from "./delivery-badge.tsx";
import { DeliverySheet } from "./delivery-sheet.tsx";

/** How many deliveries a page of the list has. */
const pageSize = 50;

/** How far back failed deliveries are sent again, in milliseconds. */
const resendMs = 7 * 86_400_000;

const states: Readonly<Record<(typeof deliveryStates)[number], DeliveryState>> = {
  pending: DeliveryState.PENDING,
  sending: DeliveryState.SENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
  dropped: DeliveryState.DROPPED,
  parked: DeliveryState.PARKED,
};

/** The card of the own account, with its filters in the address. */
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

/** The card with the list of an account, the filter and the sheet. */
export function DeliveryCard({
  accountId,
  search,
  onSearch: set,
}: {
  accountId: string;
  search: DeliverySearch;
  onSearch: (search: DeliverySearch) => void;
}) {
  const { webhooks: text, common } = useText();
  const { delivery, ...filters } = search;
  return (
    <Card>
      <CardHead
        title={text.deliveries}
        hint={text.deliveriesHint}
        actions={<ResendFailed accountId={accountId} />}
      />
      <div className="flex flex-wrap gap-2 border-b border-line px-5 pb-4">
        <SelectField
          label={common.status}
          isLabelHidden
          className="w-40"
          value={search.state ?? ""}
          choices={[
            { value: "", label: text.anyState },
            ...deliveryStates.map((value) => ({ value, label: text.states[states[value]] ?? "" })),
          ]}
          onChoose={(value) => set(defined({ ...filters, state: oneOf(value, deliveryStates) }))}
        />
        {search.task !== undefined && (
          <Button onClick={() => set(defined({ state: search.state }))}>
            <span className="font-mono text-xs">{search.task.slice(0, 13)}…</span>
            <X aria-hidden="true" />
          </Button>
        )}
      </div>
      <DeliveryList
        accountId={accountId}
        search={search}
        onOpen={(id) => set({ ...filters, delivery: id })}
      />
      <DeliverySheet deliveryId={delivery} onClose={() => set(filters)} />
    </Card>
  );
}

function DeliveryList({
  accountId,
  search,
  onOpen,
}: {
  accountId: string;
  search: DeliverySearch;
  onOpen: (deliveryId: string) => void;
}) {
  const texts = useText();
  const { webhooks: text } = texts;
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    WebhookService.method.listDeliveries,
    {
      accountId,
      pageSize,
      pageToken: "",
      taskId: search.task ?? "",
      state: search.state === undefined ? DeliveryState.UNSPECIFIED : states[search.state],
    },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
      refetchInterval: 5_000,
    },
  );
  const columns = deliveryColumns(texts, onOpen);
  if (error !== null) {
    return (
      <div className="p-5">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  return (
    <>
      <Table
        label={text.deliveries}
        columns={columns}
        rows={data?.pages.flatMap(({ deliveries }) => deliveries)}
        keyOf={({ deliveryId }) => deliveryId}
        onOpen={({ deliveryId }) => onOpen(deliveryId)}
        isOpen={({ deliveryId }) => deliveryId === search.delivery}
        empty={
          search.state === undefined && search.task === undefined ? (
            <Empty icon={<Webhook />} title={text.empty} hint={text.emptyHint} />
          ) : (
            <Empty title={text.noMatch} />
          )
        }
      />
      <MoreRows
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage()}
      />
    </>
  );
}

function deliveryColumns(
  { webhooks: text, common }: Texts,
  onOpen: (deliveryId: string) => void,
): Column<Delivery>[] {
  return [
    {
      id: "time",
      title: text.happened,
      cell: ({ createTime, deliveryId }) => (
        <RowButton onOpen={() => onOpen(deliveryId)}>
          <span className="sr-only">{text.open(deliveryId)}</span>
          <span aria-hidden="true">
            <Time time={createTime} />
          </span>
        </RowButton>
      ),
    },
    { id: "state", title: common.status, cell: ({ state }) => <DeliveryBadge state={state} /> },
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
      title: text.receiver,
      from: "md",
      cell: ({ url }) => (
        <span className="block max-w-64 truncate" title={url}>
          {url}
        </span>
      ),
    },
    {
      id: "attempts",
      title: text.attempts,
      isNumber: true,
      from: "sm",
      cell: ({ attemptCount }) => attemptCount,
    },
    {
      id: "next",
      title: text.next,
      from: "lg",
      cell: ({ nextAttemptTime }) => <Time isRelative time={nextAttemptTime} />,
    },
  ];
}

function ResendFailed({ accountId }: { accountId: string }) {
  const { webhooks: text } = useText();
  const toast = useToast();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const resend = useMutation(WebhookService.method.resendFailed, {
    onSuccess: async ({ deliveryCount }) => {
      setOpen(false);
      toast({ title: text.resentCount(deliveryCount) });
      await queries.invalidateQueries();
    },
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
      >
        {text.resendFailedText}
        <ErrorNote error={resend.error} />
      </Confirm>
    </>
  );
}
