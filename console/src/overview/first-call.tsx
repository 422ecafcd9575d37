/** The first call: an example to run, and a notice when the call arrives. */
import { useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, KeyRound, Wallet } from "lucide-react";
import { useEffect, useState } from "react";
import { CallOutcome, type CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useBalance } from "../billing/balance.tsx";
import { didFail } from "../calls/columns.tsx";
import { useTail } from "../calls/use-tail.ts";
import { apiOrigin } from "../common/api.ts";
import { errorWord } from "../common/contract.ts";
import { useText } from "../common/language.tsx";
import { nanosOf, usd } from "../common/money.ts";
import { useAccountId } from "../common/session.tsx";
import { snippets } from "../common/snippets.ts";
import { cheapestTextModel, usePrices } from "../models/prices.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { CodeTabs } from "../ui/code.tsx";

/** Whether the account has had a successful call. */
interface FirstCallState {
  /** Undefined if unknown, or while the card is loading. */
  readonly hadOne: boolean | undefined;
}

/** The filter of successful calls: after one, the first steps are done. */
const answered = { outcome: CallOutcome.SUCCEEDED, statusMin: 200, statusMax: 299 };

/**
 * Fetches the data of {@link FirstCall}, so that the page can wait for it and does not move when it
 * arrives.
 */
export function useFirstCall(): FirstCallState {
  const accountId = useAccountId();
  const { data, error } = useQuery(
    CallService.method.listCalls,
    { accountId, pageSize: 1, filter: answered },
    { staleTime: Infinity, refetchOnWindowFocus: false },
  );
  // The state when the page was opened: a later call is shown as a notice.
  const [hadOne, setHadOne] = useState<boolean>();
  if (hadOne === undefined && data !== undefined) setHadOne(data.calls.length > 0);
  const { isReady } = useParts(accountId);
  if (error !== null) return { hadOne: true };
  return { hadOne: hadOne === false && !isReady ? undefined : hadOne };
}

/** The data of the card. */
function useParts(accountId: string) {
  const keys = useQuery(KeyService.method.listKeys, { accountId });
  const balance = useBalance();
  const prices = usePrices();
  const failed = useQuery(CallService.method.listCalls, {
    accountId,
    pageSize: 1,
    filter: { outcome: CallOutcome.FAILED },
  });
  const parts = [keys, balance, prices, failed];
  const isReady = parts.every(({ data, error }) => data !== undefined || error !== null);
  return {
    isReady,
    hasKey: keys.data?.keys.some(({ state }) => state === KeyState.ENABLED) ?? true,
    hasMoney: balance.data === undefined || nanosOf(balance.data.available) > 0n,
    model: cheapestTextModel(prices.data),
    failed: failed.data?.calls[0],
  };
}

/** Shows instructions for the first call, until one succeeds. */
export function FirstCall() {
  const accountId = useAccountId();
  const [isDone, setDone] = useState(false);
  const { calls } = useTail({ accountId, isOn: !isDone });
  const first = calls.toReversed().find((call) => !didFail(call) && call.status < 300);
  const queries = useQueryClient();
  const hasFirst = first !== undefined;
  useEffect(() => {
    // Balance, charts and lists have changed.
    if (hasFirst) void queries.invalidateQueries();
  }, [hasFirst, queries]);
  if (isDone) return null;
  if (first !== undefined) return <Arrived call={first} onDone={() => setDone(true)} />;
  return <Waiting accountId={accountId} lastFailed={calls.find(didFail)} />;
}

function Waiting({
  accountId,
  lastFailed,
}: {
  accountId: string;
  lastFailed: CallRecord | undefined;
}) {
  const { overview } = useText();
  const { hasKey, hasMoney, model, failed } = useParts(accountId);
  const wrong = lastFailed ?? failed;
  return (
    <Card>
      <CardHead
        title={overview.firstTitle}
        hint={
          hasMoney ? (hasKey ? overview.firstHint : overview.firstNoKey) : overview.firstNoMoney
        }
        actions={<NextStep hasMoney={hasMoney} hasKey={hasKey} />}
      />
      <div className="px-5 pb-5">
        {hasMoney && hasKey && model !== undefined && (
          <>
            <CodeTabs
              label={overview.firstTitle}
              versions={snippets({ origin: apiOrigin(), model, key: undefined })}
            />
            <p className="mt-2 text-xs text-muted">{overview.usesKey}</p>
          </>
        )}
        {wrong !== undefined && <Failed call={wrong} />}
        <p role="status" className="mt-4 flex items-center gap-2.5 text-muted">
          <span aria-hidden="true" className="relative flex size-2.5">
            <span className="absolute inset-0 animate-ping rounded-full bg-accent opacity-60" />
            <span className="size-2.5 rounded-full bg-accent" />
          </span>
          {overview.waiting}
        </p>
      </div>
    </Card>
  );
}

/** The next requirement for a call: a balance, then a key. */
function NextStep({ hasMoney, hasKey }: { hasMoney: boolean; hasKey: boolean }) {
  const { overview } = useText();
  if (!hasMoney) {
    return (
      <Link to="/billing" className={buttonClass("primary")}>
        <Wallet aria-hidden="true" />
        {overview.firstMoney}
      </Link>
    );
  }
  if (hasKey) return null;
  return (
    <Link to="/keys" search={{ create: true }} className={buttonClass("primary")}>
      <KeyRound aria-hidden="true" />
      {overview.firstCreate}
    </Link>
  );
}

/** The last failed call, with advice. */
function Failed({ call }: { call: CallRecord }) {
  const { overview, calls } = useText();
  return (
    <div
      role="status"
      className="mt-4 flex flex-wrap items-center gap-3 rounded-xl bg-warn-soft px-4 py-3 text-warn"
    >
      <CircleX aria-hidden="true" className="size-4 shrink-0" />
      <div className="min-w-0 flex-1">
        <p className="font-semibold">
          {overview.firstFailed(call.status, errorWord(call.errorCode))}
        </p>
        <p>{calls.advice(errorWord(call.errorCode), call.ending)}</p>
      </div>
      <Link to="/calls" search={{ call: call.callId }} className={buttonClass()}>
        {overview.openCall}
      </Link>
    </div>
  );
}

function Arrived({ call, onDone }: { call: CallRecord; onDone: () => void }) {
  const { overview } = useText();
  return (
    <Card className="border-good/40">
      <div role="status" className="flex flex-wrap items-center gap-4 px-5 py-4">
        <CircleCheck aria-hidden="true" className="text-good" />
        <div className="min-w-0 flex-1">
          <p className="font-semibold">{overview.arrived}</p>
          <p className="text-muted">{overview.arrivedText(call.model, usd(nanosOf(call.cost)))}</p>
        </div>
        <div className="flex gap-2">
          <Link to="/calls" search={{ call: call.callId }} className={buttonClass("primary")}>
            {overview.openCall}
          </Link>
          <Button onClick={onDone}>{overview.dismiss}</Button>
        </div>
      </div>
    </Card>
  );
}
