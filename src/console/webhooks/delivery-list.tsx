/** The list of deliveries, of an account or of all. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Webhook } from "lucide-react";
import { type Delivery, DeliveryState } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useAccountNames } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import type { DeliverySearch, deliveryStates } from "../common/search.ts";
import { Empty } from "../ui/card.tsx";
import { Badge, ErrorNote, Time, type Tone } from "../ui/show.tsx";
import { type Column, MoreRows, RowButton, Table } from "../ui/table.tsx";

/** How many deliveries a page of the list has. */
const pageSize = 50;

/** The list, page by page. */
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
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
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
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
      refetchInterval: 5_000,
    },
  );
  const accountNames = useAccountNames(accountId === "");
  const columns = deliveryColumns({ texts, onOpen, ...(accountId === "" && { accountNames }) });
  if (error !== null) {
    return (
      <div className="p-5">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  const { state, task, origin } = search;
  const isFiltered = state !== undefined || task !== undefined || origin !== undefined;
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
          isFiltered ? (
            <Empty title={text.noMatch} />
          ) : (
            <Empty icon={<Webhook />} title={text.empty} hint={text.emptyHint} />
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

function deliveryColumns({
  texts: { webhooks: text, common },
  onOpen,
  accountNames,
}: {
  texts: Texts;
  onOpen: (deliveryId: string) => void;
  /** For a list of several accounts: whose a delivery is. */
  accountNames?: ReadonlyMap<string, string>;
}): Column<Delivery>[] {
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
    ...(accountNames === undefined ? [] : [accountColumn(common.account, accountNames)]),
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

function accountColumn(title: string, names: ReadonlyMap<string, string>): Column<Delivery> {
  return {
    id: "account",
    title,
    cell: ({ accountId }) => (
      <Link
        to="/accounts/$accountId"
        params={{ accountId }}
        className="block max-w-40 truncate rounded underline-offset-4 hover:underline"
      >
        {names.get(accountId) ?? accountId.slice(-12)}
      </Link>
    ),
  };
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

/** How far a delivery is. */
export function DeliveryBadge({ state }: { state: DeliveryState }) {
  const { webhooks: text } = useText();
  return <Badge tone={tones[state] ?? "neutral"}>{text.states[state]}</Badge>;
}

/** What they are in the contract. */
export const states: Readonly<Record<(typeof deliveryStates)[number], DeliveryState>> = {
  pending: DeliveryState.PENDING,
  sending: DeliveryState.SENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
  dropped: DeliveryState.DROPPED,
  parked: DeliveryState.PARKED,
};
