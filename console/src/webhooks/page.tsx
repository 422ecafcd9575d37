/** Webhooks of the account, and for operators the deliveries of every account. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { AccountFilter } from "../accounts/account.tsx";
import { useText } from "../common/language.tsx";
import { type AllDeliverySearch, defined } from "../common/search.ts";
import { localZone } from "../common/time.ts";
import { PageHead } from "../ui/card.tsx";
import { Deliveries, DeliveryCard } from "./deliveries.tsx";
import { TestEvent, Endpoints } from "./endpoints.tsx";
import { SecretCard } from "./signing-secret.tsx";

/** `/webhooks`. */
export function WebhooksPage() {
  const { webhooks: text, common } = useText();
  return (
    <>
      <PageHead
        title={text.title}
        hint={common.withZone(text.hint, localZone())}
        actions={<TestEvent />}
      />
      <div className="flex flex-col gap-6">
        <Deliveries />
        <Endpoints />
        <SecretCard />
      </div>
    </>
  );
}

/** `/all-deliveries`, for operators. */
export function AllDeliveriesPage() {
  const { allDeliveries: text, common } = useText();
  const { account, ...search } = useSearch({ from: "/inside/operator/all-deliveries" });
  const navigate = useNavigate({ from: "/all-deliveries" });
  const set = (next: AllDeliverySearch): void => void navigate({ search: next, replace: true });
  return (
    <>
      <PageHead
        title={text.title}
        hint={common.withZone(account === undefined ? text.hint : text.hintOne, localZone())}
      />
      <DeliveryCard
        accountId={account ?? ""}
        search={search}
        onSearch={(next) => set({ ...next, ...defined({ account }) })}
        accountFilter={
          <AccountFilter
            accountId={account}
            onChoose={(accountId) => set(defined({ ...search, account: accountId }))}
          />
        }
      />
    </>
  );
}
