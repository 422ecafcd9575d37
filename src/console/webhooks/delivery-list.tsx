/** The list of deliveries, of an account or of all. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Webhook } from "lucide-react";
import { type Delivery, DeliveryState } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { accountColumn, useAccountNames } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import type { DeliverySearch, deliveryStates } from "../common/search.ts";
import { Empty } from "../ui/card.tsx";
import { Badge, type Tone, Truncated } from "../ui/show.tsx";
import { agoColumn, type Column, QueryTable, RowTime } from "../ui/table.tsx";

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
export function DeliveryBadge({ state }: { state: DeliveryState }) {
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
