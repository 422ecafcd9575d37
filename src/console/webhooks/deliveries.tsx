/** Deliveries of webhooks with their filters. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../common/language.tsx";
import { defined, type DeliverySearch, deliveryStates, oneOf } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { timestampOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { SelectField } from "../ui/field.tsx";
import { FilterField } from "../ui/filter-bar.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { useToast } from "../ui/toast.tsx";
import { DeliveryList, states } from "./delivery-list.tsx";
import { DeliverySheet } from "./delivery-sheet.tsx";

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

/** The card with the list of an account or of all, the filters and the sheet. */
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

/** What deliveries are narrowed to. */
type Filters = Omit<DeliverySearch, "delivery">;

/** The row of filters. Each change is told at once. */
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
  const { state, origin, task } = filters;
  const set = (change: { [Name in keyof Filters]: Filters[Name] | undefined }): void =>
    onFilter(defined({ ...filters, ...change }));
  return (
    <div
      role="search"
      aria-label={`${text.deliveries}: ${common.filters}`}
      className="grid grid-cols-2 gap-2 border-b border-line px-5 pb-4 sm:flex sm:flex-wrap"
    >
      <SelectField
        label={common.status}
        isLabelHidden
        className="sm:w-40"
        value={state ?? ""}
        choices={[
          { value: "", label: text.anyState },
          ...deliveryStates.map((value) => ({ value, label: text.states[states[value]] ?? "" })),
        ]}
        onChoose={(value) => set({ state: oneOf(value, deliveryStates) })}
      />
      {children}
      <FilterField
        key={`origin ${origin}`}
        label={text.receiver}
        value={origin}
        onChoose={(value) => set({ origin: value && originOf(value) })}
        className="sm:w-52"
      />
      <FilterField
        key={`task ${task}`}
        label={text.taskId}
        value={task}
        onChoose={(value) => set({ task: value })}
        className="sm:w-52"
      />
      {Object.keys(filters).length > 0 && (
        <Button tone="quiet" onClick={() => onFilter({})}>
          {common.clearFilters}
        </Button>
      )}
    </div>
  );
}

/** A receiver as the contract names it, of whatever was pasted: a callback address, or a host without its scheme. */
function originOf(typed: string): string {
  const url = URL.parse(typed) ?? URL.parse(`https://${typed}`);
  return url === null || url.origin === "null" ? typed : url.origin;
}

/** How far back failed deliveries are sent again, in milliseconds. */
const resendMs = 7 * 86_400_000;

/** The button, which asks first. */
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
