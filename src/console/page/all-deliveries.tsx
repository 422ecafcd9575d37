/** The webhooks of every account, for operators. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { AccountFilter } from "../account/account-filter.tsx";
import { useText } from "../language.tsx";
import type { AllDeliverySearch } from "../operator/search.ts";
import { defined } from "../search.ts";
import { localZone } from "../time.ts";
import { PageHead } from "../ui/card.tsx";
import { DeliveryCard } from "../webhook/deliveries.tsx";

/** The page. */
export function AllDeliveriesPage() {
  const {
    operator: { allDeliveries: text },
    common,
  } = useText();
  const { account, ...search } = useSearch({ from: "/inside/operator/all-deliveries" });
  const navigate = useNavigate({ from: "/all-deliveries" });
  const set = (next: AllDeliverySearch): void => void navigate({ search: next, replace: true });
  return (
    <>
      <PageHead
        title={text.title}
        hint={`${account === undefined ? text.hint : text.hintOne} ${common.zoneNote(localZone())}`}
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
