/** Accounts: the list of all customers, for operators. */
import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Building2, Plus } from "lucide-react";
import { useState } from "react";
import { type Account, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import type { Balance } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { LowBalanceBadge } from "../billing/balance.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import { type AccountSearch, defined } from "../common/search.ts";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { TextField } from "../ui/field.tsx";
import { FilterBar, FilterField, FilterSegments } from "../ui/filter-bar.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { Amount } from "../ui/show.tsx";
import { agoColumn, type Column, QueryTable } from "../ui/table.tsx";
import { AccountBadge } from "./account.tsx";

/** Accounts of one page of the list. */
const pageSize = 50;

/** `/accounts`, for operators. */
export function AccountsPage() {
  const { accounts: text } = useText();
  const [isCreating, setCreating] = useState(false);
  return (
    <>
      <PageHead
        title={text.title}
        hint={text.hint}
        actions={
          <Button tone="primary" onClick={() => setCreating(true)}>
            <Plus aria-hidden="true" />
            {text.create}
          </Button>
        }
      />
      <Card>
        <Filters />
        <AccountList />
      </Card>
      {isCreating && <CreateAccountDialog onClose={() => setCreating(false)} />}
    </>
  );
}

function Filters() {
  const { accounts: text } = useText();
  const search = useSearch({ from: "/inside/operator/accounts" });
  const navigate = useNavigate({ from: "/accounts" });
  const set = (next: { [Name in keyof AccountSearch]: AccountSearch[Name] | undefined }): void =>
    void navigate({ search: defined({ ...search, ...next }), replace: true });
  return (
    <FilterBar label={text.title}>
      <FilterField
        label={text.search}
        value={search.q}
        onChoose={(q) => set({ q })}
        className="col-span-2 sm:w-80"
      />
      <FilterSegments
        label={text.state}
        any={text.anyState}
        value={search.state}
        choices={[
          { value: "active", label: text.active },
          { value: "suspended", label: text.suspended },
        ]}
        onChoose={(state) => set({ state })}
      />
    </FilterBar>
  );
}

const states = { active: AccountState.ACTIVE, suspended: AccountState.SUSPENDED } as const;

function AccountList() {
  const texts = useText();
  const { accounts: text } = texts;
  const { q = "", state } = useSearch({ from: "/inside/operator/accounts" });
  const query = useInfiniteQuery(
    AccountService.method.listAccounts,
    { pageSize, query: q, ...(state && { state: states[state] }), pageToken: "" },
    paged,
  );
  const rows = query.data?.pages.flatMap(({ accounts }) => accounts);
  const balances = useBalances(rows);
  const isSearched = q !== "" || state !== undefined;
  return (
    <QueryTable
      query={query}
      label={text.title}
      columns={columnsOf(texts, balances)}
      rows={rows}
      keyOf={({ accountId }) => accountId}
      empty={
        <Empty
          icon={<Building2 />}
          title={isSearched ? text.noMatch : text.empty}
          hint={isSearched ? text.noMatchHint : text.emptyHint}
        />
      }
    />
  );
}

/**
 * Maximum number of accounts whose balances are fetched; later ones show theirs on their page only.
 */
const balancesMax = 1_000;

/** The balances of all accounts of the list by their id, in one request. */
function useBalances(accounts: readonly Account[] | undefined): ReadonlyMap<string, Balance> {
  const accountIds = (accounts ?? []).slice(0, balancesMax).map(({ accountId }) => accountId);
  const { data } = useQuery(
    BillingService.method.listBalances,
    { accountIds },
    { enabled: accountIds.length > 0, placeholderData: keepPreviousData },
  );
  return new Map((data?.balances ?? []).map((balance) => [balance.accountId, balance]));
}

function columnsOf(
  { accounts: text }: Texts,
  balances: ReadonlyMap<string, Balance>,
): Column<Account>[] {
  return [
    {
      id: "name",
      title: text.name,
      cell: (account) => <NameLink account={account} />,
    },
    {
      id: "state",
      title: text.state,
      cell: (account) => (
        <span className="flex flex-wrap gap-1">
          <AccountBadge account={account} />
          <LowBalanceBadge account={account} balance={balances.get(account.accountId)} />
        </span>
      ),
    },
    {
      id: "available",
      title: text.available,
      isNumber: true,
      cell: ({ accountId }) => <Amount money={balances.get(accountId)?.available} />,
    },
    {
      id: "held",
      title: text.held,
      isNumber: true,
      from: "lg",
      cell: ({ accountId }) => <Amount money={balances.get(accountId)?.held} />,
    },
    {
      id: "discount",
      title: text.discount,
      isNumber: true,
      from: "lg",
      cell: ({ discountBp }) => discountText(discountBp),
    },
    agoColumn({
      id: "created",
      title: text.created,
      from: "md",
      time: ({ createTime }) => createTime,
    }),
    {
      id: "id",
      title: text.id,
      from: "md",
      isTight: true,
      cell: ({ accountId }) => <Id value={accountId} />,
    },
  ];
}

function NameLink({ account: { accountId, name } }: { account: Account }) {
  return (
    <Link
      to="/accounts/$accountId"
      params={{ accountId }}
      className="block max-w-40 truncate font-medium underline-offset-4 hover:underline sm:max-w-72"
      title={name}
    >
      {name}
    </Link>
  );
}

/** Creates an account, and opens it. */
function CreateAccountDialog({ onClose }: { onClose: () => void }) {
  const { accounts: text } = useText();
  const [name, setName] = useState("");
  const navigate = useNavigate();
  const done = useDone();
  const create = useMutation(AccountService.method.createAccount, {
    onSuccess: async ({ account }) => {
      if (account === undefined) return;
      const { accountId } = account;
      await navigate({ to: "/accounts/$accountId", params: { accountId } });
      await done(text.didCreate(account.name));
    },
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.createTitle}
      onSubmit={() => create.mutate({ name })}
      submit={text.create}
      isBusy={create.isPending}
      error={create.error}
    >
      <TextField
        label={text.name}
        hint={text.nameHint}
        value={name}
        maxLength={200}
        required
        autoFocus
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  );
}

/** `12.5 %`; a dash if there is no discount. */
function discountText(bp: number): string {
  return bp === 0 ? "—" : `${bp / 100} %`;
}
