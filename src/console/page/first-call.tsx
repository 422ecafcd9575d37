/** The first call: an example to run, and the news when it arrives. */
import { useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, KeyRound } from "lucide-react";
import { useEffect, useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { didFail } from "../call/ending.tsx";
import { useTail } from "../call/use-tail.ts";
import { useText } from "../language.tsx";
import { cheapestText, usePrices } from "../models.ts";
import { nanosOf, usd } from "../money.ts";
import { useAccountId } from "../session.tsx";
import { snippets } from "../snippets.ts";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { CodeTabs } from "../ui/code.tsx";

/** Shows how to make the first call, until there has been one. Nothing where there was one before. */
export function FirstCall() {
  const accountId = useAccountId();
  const { data } = useQuery(
    BillingService.method.listCalls,
    { accountId, pageSize: 1 },
    { staleTime: Infinity, refetchOnWindowFocus: false },
  );
  const [isDone, setDone] = useState(false);
  // Whether there were calls when the page was opened: what comes afterwards is the news.
  const [hadCalls, setHadCalls] = useState<boolean>();
  if (hadCalls === undefined && data !== undefined) setHadCalls(data.calls.length > 0);
  if (hadCalls !== false || isDone) return null;
  return <Waiting accountId={accountId} onDone={() => setDone(true)} />;
}

function Waiting({ accountId, onDone }: { accountId: string; onDone: () => void }) {
  const { overview } = useText();
  const { calls } = useTail({ accountId, isOn: true });
  const keys = useQuery(KeyService.method.listKeys, { accountId });
  const prices = usePrices();
  const [first] = calls.toReversed();
  const queries = useQueryClient();
  const hasFirst = first !== undefined;
  useEffect(() => {
    // Balance, charts and lists have something to show now.
    if (hasFirst) void queries.invalidateQueries();
  }, [hasFirst, queries]);
  if (first !== undefined) return <Arrived call={first} onDone={onDone} />;
  const hasKey = keys.data?.keys.some(({ state }) => state === KeyState.ENABLED) ?? true;
  const model = cheapestText(prices.data);
  return (
    <Card>
      <CardHead
        title={overview.firstTitle}
        hint={hasKey ? overview.firstHint : overview.firstNoKey}
        actions={
          !hasKey && (
            <Link to="/keys" search={{ create: true }} className={buttonClass("primary")}>
              <KeyRound aria-hidden="true" />
              {overview.firstCreate}
            </Link>
          )
        }
      />
      <div className="px-5 pb-5">
        {hasKey && model !== undefined && (
          <>
            <CodeTabs
              label={overview.firstTitle}
              versions={snippets({ origin: location.origin, model, key: undefined })}
            />
            <p className="mt-2 text-xs text-muted">{overview.usesKey}</p>
          </>
        )}
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

function Arrived({ call, onDone }: { call: CallRecord; onDone: () => void }) {
  const { overview, calls } = useText();
  const isFailed = didFail(call);
  return (
    <Card className={isFailed ? "border-bad/40" : "border-good/40"}>
      <div role="status" className="flex flex-wrap items-center gap-4 px-5 py-4">
        <span className={isFailed ? "text-bad" : "text-good"}>
          {isFailed ? <CircleX aria-hidden="true" /> : <CircleCheck aria-hidden="true" />}
        </span>
        <div className="min-w-0 flex-1">
          <p className="font-semibold">{isFailed ? overview.arrivedFailed : overview.arrived}</p>
          <p className="text-muted">
            {isFailed
              ? calls.advice(call.errorCode)
              : overview.arrivedText(call.model, usd(nanosOf(call.cost)))}
          </p>
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
