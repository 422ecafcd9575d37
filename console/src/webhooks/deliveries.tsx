/** Deliveries of webhooks with their filters. */
import { useMutation } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../common/language.tsx";
import { defined, type DeliverySearch, deliveryStates, hasFilters } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { timestampOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { FilterBar, FilterField, FilterSelect } from "../ui/filter-bar.tsx";
import { useDone } from "../ui/form.tsx";
import { DeliveryList, DeliverySheet, states } from "./delivery.tsx";

/** The deliveries of the user's account, with the filters in the address. */
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
  /** For operators: selects the account. Absent if there is only one. */
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

/**
 * The origin of an endpoint, from any pasted text: a callback URL, or a host without its scheme.
 */
function originOf(typed: string): string {
  const url = URL.parse(typed) ?? URL.parse(`https://${typed}`);
  return url === null || url.origin === "null" ? typed : url.origin;
}

/** Maximum age of failed deliveries that are resent. */
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
