/** Every delivery of an account, by its state. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useText } from "../language.tsx";
import type { DeliverySearch } from "../search.ts";
import { useAccountId } from "../session.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { DeliveryFilters } from "./delivery-filters.tsx";
import { DeliveryList } from "./delivery-list.tsx";
import { DeliverySheet } from "./delivery-sheet.tsx";
import { ResendFailed } from "./resend-failed.tsx";

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
