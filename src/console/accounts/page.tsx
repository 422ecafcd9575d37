/** Accounts: the list of all customers, for operators. */
import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Building2, Plus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { type Account, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import type { Balance } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { LowBalanceBadge } from "../billing/balance.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { type AccountSearch, defined, oneOf } from "../common/search.ts";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Segments, TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Amount, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, MoreRows, Table } from "../ui/table.tsx";
import { useDone } from "../ui/toast.tsx";
import { AccountBadge } from "./account.tsx";

/** How many accounts a page of the list has. */
const pageSize = 50;

/** The page. */
export function AccountsPage() {
  const {
    operator: { accounts: text },
  } = useText();
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
  const {
    operator: { accounts: text },
  } = useText();
  const search = useSearch({ from: "/inside/operator/accounts" });
  const navigate = useNavigate({ from: "/accounts" });
  const [query, setQuery] = useState(search.q ?? "");
  const set = (next: { [Name in keyof AccountSearch]: AccountSearch[Name] | undefined }): void =>
    void navigate({ search: defined({ ...search, ...next }), replace: true });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    set({ q: query.trim() || undefined });
  };
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 border-b border-line p-4">
      <form role="search" onSubmit={submit} className="w-full max-w-80">
        <TextField
          label={text.search}
          isLabelHidden
          type="search"
          placeholder={text.search}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          onBlur={() => query.trim() !== (search.q ?? "") && set({ q: query.trim() || undefined })}
          className="h-8"
        />
      </form>
      <Segments
        label={text.state}
        value={search.state ?? ""}
        choices={[
          { value: "", label: text.anyState },
          { value: "active", label: text.active },
          { value: "suspended", label: text.suspended },
        ]}
        onChoose={(value) => set({ state: oneOf(value, ["active", "suspended"]) })}
      />
    </div>
  );
}

const states = { active: AccountState.ACTIVE, suspended: AccountState.SUSPENDED } as const;

function AccountList() {
  const texts = useText();
  const { accounts: text } = texts.operator;
  const { q = "", state } = useSearch({ from: "/inside/operator/accounts" });
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    AccountService.method.listAccounts,
    { pageSize, query: q, ...(state && { state: states[state] }), pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
    },
  );
  const rows = data?.pages.flatMap(({ accounts }) => accounts);
  const balances = useBalances(rows);
  if (error !== null) {
    return (
      <div className="p-5">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  const isSearched = q !== "" || state !== undefined;
  return (
    <>
      <Table
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
      <MoreRows
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage()}
      />
    </>
  );
}

/** The most accounts whose balances are asked for; those below them have none in the list, but on their page. */
const balancesMax = 1_000;

/** What the accounts have, by their id: one question for all that are listed. */
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
  { operator: { accounts: text } }: Texts,
  balances: ReadonlyMap<string, Balance>,
): Column<Account>[] {
  return [
    {
      id: "name",
      title: text.name,
      cell: ({ accountId, name }) => (
        <Link
          to="/accounts/$accountId"
          params={{ accountId }}
          className="block max-w-40 truncate font-medium underline-offset-4 hover:underline sm:max-w-72"
          title={name}
        >
          {name}
        </Link>
      ),
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
    {
      id: "created",
      title: text.created,
      from: "md",
      cell: ({ createTime }) => <Time isRelative time={createTime} />,
    },
    {
      id: "id",
      title: text.id,
      from: "md",
      isTight: true,
      cell: ({ accountId }) => <Id value={accountId} />,
    },
  ];
}

/** Makes an account, and goes to it. */
function CreateAccountDialog({ onClose }: { onClose: () => void }) {
  const {
    operator: { accounts: text },
  } = useText();
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

/** `12.5 %`; a dash where there is none. */
function discountText(bp: number): string {
  return bp === 0 ? "—" : `${bp / 100} %`;
}
