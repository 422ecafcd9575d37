/** One call in detail: what it was, what it cost and why, what happened when, and what to do where it failed. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { Undo2 } from "lucide-react";
import { useState } from "react";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import type { CallEvent, CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import type { Receipt } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { newReference, ReferenceField } from "../account/balance-dialog.tsx";
import { AccountIdLink } from "../accounts/account.tsx";
import { apiOrigin } from "../common/api.ts";
import { errorWord, millis } from "../common/contract.ts";
import { useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd, priceText, usd } from "../common/money.ts";
import { useSession } from "../common/session.tsx";
import { durationText, exactTimeText, msOf } from "../common/time.ts";
import { useKeyNames } from "../keys/keys.tsx";
import { Button } from "../ui/button.tsx";
import { Facts, Skeleton } from "../ui/card.tsx";
import { CodeBlock, Id } from "../ui/code.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { Amount, Badge, ErrorNote, Time } from "../ui/show.tsx";
import { callCurl, tasksPath } from "../common/snippets.ts";
import { didFail, EndingBadge } from "./columns.tsx";

/** The details of a call; open while there is an id. */
export function CallSheet({
  accountId,
  callId,
  onClose,
}: {
  accountId: string;
  callId: string | undefined;
  onClose: () => void;
}) {
  const { calls: text } = useText();
  const { data, error, refetch } = useQuery(
    CallService.method.getCall,
    callId === undefined ? skipToken : { accountId, call: { case: "callId", value: callId } },
    { staleTime: 0 },
  );
  const call = data?.call;
  return (
    <Sheet
      isOpen={callId !== undefined}
      onClose={onClose}
      title={text.sheetTitle}
      actions={call && <CopyButton text={supportText(call)} label={text.support} />}
    >
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {error === null && call === undefined && <Skeleton className="h-64" />}
      {call !== undefined && (
        <div className="flex flex-col gap-7">
          {didFail(call) && <Advice call={call} />}
          <About call={call} />
          <section>
            <div className="mb-3 flex flex-wrap items-center justify-between gap-3">
              <h3 className="font-semibold">{text.receipt}</h3>
              <RefundButton call={call} />
            </div>
            {data?.receipt && <ReceiptView receipt={data.receipt} />}
          </section>
          <Attempts call={call} />
          <Timeline events={data?.events ?? []} />
          <ReproduceSection call={call} />
          <p className="hidden text-xs text-muted lg:block">{text.keyboardHint}</p>
        </div>
      )}
    </Sheet>
  );
}

/** The text for a support request, by which the call is found. */
function supportText({ requestId, callId, startTime, status, errorCode }: CallRecord): string {
  const time = startTime ? exactTimeText(msOf(startTime)) : "";
  return `x-request-id: ${requestId}\ncall: ${callId}\ntime: ${time}\nstatus: ${status} ${errorWord(errorCode)}`.trim();
}

function Advice({ call }: { call: CallRecord }) {
  const { calls: text } = useText();
  return (
    <section className="rounded-xl bg-warn-soft px-4 py-3 text-warn">
      <h3 className="font-semibold">{text.endings[call.ending]}</h3>
      <p className="mt-1">{text.advice(errorWord(call.errorCode), call.ending)}</p>
    </section>
  );
}

function About({ call }: { call: CallRecord }) {
  const { calls: text, common } = useText();
  const { account } = useSession();
  const keyNames = useKeyNames(call.accountId);
  const { usage } = call;
  const isEstimated = call.usageSource === UsageSource.ESTIMATED;
  const count = (tokens: number, cached: number): string =>
    `${tokens.toLocaleString()}${cached > 0 ? ` (${text.cachedOf(cached.toLocaleString())})` : ""}`;
  return (
    <Facts
      rows={[
        [common.status, <EndingBadge key="status" call={call} />],
        [common.time, <Time key="time" time={call.startTime} />],
        [
          common.model,
          <span key="model" className="font-mono text-xs">
            {call.model || "—"}
          </span>,
        ],
        ...(call.accountId === account.accountId
          ? []
          : [
              [common.account, <AccountIdLink key="account" accountId={call.accountId} />] as const,
            ]),
        [text.path, call.path],
        [common.key, keyNames.get(call.keyId) ?? <Id key="key" value={call.keyId} />],
        ...(call.vendor === "" ? [] : [[text.vendor, call.vendor] as const]),
        ...(usage === undefined
          ? []
          : ([
              [text.input, count(usage.inputTokens, usage.cachedInputTokens)],
              [
                text.output,
                `${usage.outputTokens.toLocaleString()}${isEstimated ? ` · ${text.estimated}` : ""}`,
              ],
            ] as const)),
        [text.duration, durationText(millis(call.duration))],
        ...(call.firstContentDuration === undefined
          ? []
          : [[text.firstByte, durationText(millis(call.firstContentDuration))] as const]),
        [text.streamed, call.stream ? text.yes : text.no],
        [text.request, <Id key="request" isWhole value={call.requestId} />],
        [text.callId, <Id key="call" isWhole value={call.callId} />],
        ...(call.upstreamRequestId === ""
          ? []
          : [
              [
                text.upstreamId,
                <Id key="upstream" isWhole value={call.upstreamRequestId} />,
              ] as const,
            ]),
        ...(call.dropped.length === 0 ? [] : [[text.dropped, call.dropped.join(", ")] as const]),
      ]}
    />
  );
}

/** The vendors that failed before another one was called. */
function Attempts({ call: { attempts } }: { call: CallRecord }) {
  const { calls: text } = useText();
  if (attempts.length === 0) return null;
  return (
    <section>
      <h3 className="mb-1 font-semibold">{text.attempts}</h3>
      <p className="mb-3 text-[0.8125rem] text-muted">{text.attemptsHint}</p>
      <ol className="divide-y divide-line rounded-xl border border-line text-[0.8125rem]">
        {attempts.map(({ vendor, vendorModel, credential, vendorCost, ...attempt }, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- a vendor may have several routes
          <li key={index} className="flex flex-wrap items-center justify-between gap-2 px-4 py-2.5">
            <span>
              <span className="font-medium">{vendor}</span>
              {vendorModel !== "" && <span className="font-mono text-xs"> {vendorModel}</span>}
              {credential !== "" && credential !== "none" && (
                <span className="block text-muted">{credential}</span>
              )}
            </span>
            <span className="flex items-center gap-3">
              <Badge tone="warn">{errorWord(attempt.errorCode)}</Badge>
              {vendorCost && (
                <span className="text-muted">{text.attemptCost(usd(nanosOf(vendorCost)))}</span>
              )}
              <span className="text-muted tabular-nums">
                {attempt.duration === undefined
                  ? text.notAsked
                  : durationText(millis(attempt.duration))}
              </span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Timeline({ events }: { events: readonly CallEvent[] }) {
  const { calls: text } = useText();
  const startMs = events[0]?.time ? msOf(events[0].time) : 0;
  return (
    <section>
      <h3 className="mb-3 font-semibold">{text.timeline}</h3>
      <ol className="relative ml-1.5 border-l border-line-strong pl-5 text-[0.8125rem]">
        {events.map(({ kind, time, held }, index) => {
          const ms = time ? msOf(time) : startMs;
          return (
            <li key={`${kind} ${ms}`} className="relative pb-3 last:pb-0">
              <span
                aria-hidden="true"
                className="absolute top-1.5 -left-[1.5625rem] size-2 rounded-full border-2 border-surface bg-muted"
              />
              <span className="font-medium">{text.events[kind]}</span>{" "}
              {held !== undefined && <Amount money={held} />}
              <span title={exactTimeText(ms)} className="float-right text-muted tabular-nums">
                {index === 0 ? <Time time={time} /> : `+${durationText(ms - startMs)}`}
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** A curl that makes a request like this call, with placeholders for what the log does not have. */
function ReproduceSection({ call }: { call: CallRecord }) {
  const { calls: text } = useText();
  const isTask = call.path === tasksPath;
  const { data: schema } = useQuery(
    TaskService.method.getModelSchema,
    isTask && call.model !== "" ? { modelKey: call.model } : skipToken,
    { retry: false },
  );
  const code = callCurl(
    { ...call, model: call.model || text.yourModel },
    {
      origin: apiOrigin(),
      message: text.yourMessage,
      body: text.yourBody,
      taskParams: schema && { [schema.paramsField]: schema.example ?? {} },
    },
  );
  return (
    <section>
      <div className="mb-1 flex flex-wrap items-center justify-between gap-3">
        <h3 className="font-semibold">{text.reproduce}</h3>
        <CopyButton text={code} label={text.copyCurl} />
      </div>
      <p className="mb-3 text-[0.8125rem] text-muted">
        {isTask ? text.reproduceTask : text.reproduceHint}
      </p>
      <CodeBlock label={text.reproduce} code={code} />
    </section>
  );
}

// The receipt of a call, every line as quantity × price, and its refund.

/** The receipt of a call: its lines, the sum, and the balance before and after. */
function ReceiptView({ receipt }: { receipt: Receipt }) {
  const { calls: text } = useText();
  const { lines, subtotal, discount, amount } = receipt;
  if (!receipt.charged) return <p className="text-muted">{text.notCharged}</p>;
  const hasDiscount = Number(discount) !== 0;
  return (
    <div className="rounded-xl border border-line">
      <table className="w-full text-[0.8125rem]">
        <tbody>
          {lines.map(({ unit, quantity, price, per, amount: lineAmount }) => (
            <tr key={unit} className="border-b border-line">
              <th scope="row" className="px-4 py-2 text-left font-normal">
                {text.units[unit]}
                <span className="block text-xs text-muted">
                  {Number(quantity).toLocaleString()} × {text.per(priceText(price), per)}
                </span>
              </th>
              <td className="px-4 py-2 text-right align-top">${lineAmount}</td>
            </tr>
          ))}
          {hasDiscount && (
            <>
              <Sum name={text.subtotal} value={`$${subtotal}`} />
              <Sum name={text.discount} value={`−$${discount}`} />
            </>
          )}
          <tr className="font-semibold">
            <th scope="row" className="px-4 py-2.5 text-left">
              {text.charged}
            </th>
            <td className="px-4 py-2.5 text-right">
              <Amount money={amount} />
            </td>
          </tr>
        </tbody>
      </table>
      <Notes receipt={receipt} />
    </div>
  );
}

/** The applied price, and the balance before and after. */
function Notes({ receipt: { shortfall, entries, tierAbove, price, call } }: { receipt: Receipt }) {
  const { calls: text } = useText();
  const charge = entries[0];
  const latest = entries.at(-1);
  return (
    <dl className="flex flex-col gap-1.5 border-t border-line px-4 py-3 text-xs text-muted">
      {tierAbove !== undefined && <Note name={text.tier(tierAbove)} />}
      {price !== undefined && price.serviceTier !== "" && (
        <Note name={text.serviceTier(price.serviceTier)} />
      )}
      <Note name={text.priceVersion}>
        <span className="font-mono">{call?.priceVersion}</span>
      </Note>
      {charge?.balanceBefore !== undefined && (
        <Note name={text.balanceBefore}>
          <Amount isExact money={charge.balanceBefore} />
        </Note>
      )}
      {latest?.balanceAfter !== undefined && (
        <Note name={text.balanceAfter}>
          <Amount isExact money={latest.balanceAfter} />
        </Note>
      )}
      {nanosOf(shortfall) > 0n && (
        <Note name={text.shortfall}>
          <Amount money={shortfall} />
        </Note>
      )}
    </dl>
  );
}

function Sum({ name, value }: { name: string; value: string }) {
  return (
    <tr className="border-b border-line text-muted">
      <th scope="row" className="px-4 py-2 text-left font-normal">
        {name}
      </th>
      <td className="px-4 py-2 text-right">{value}</td>
    </tr>
  );
}

function Note({ name, children }: { name: string; children?: React.ReactNode }) {
  return (
    <div className="flex justify-between gap-4">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Refunds a charge: for operators only, and only where something was charged. */
function RefundButton({ call }: { call: CallRecord }) {
  const { refund: text } = useText();
  const { isOperator } = useSession();
  const [isOpen, setOpen] = useState(false);
  if (!isOperator || nanosOf(call.cost) === 0n) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Undo2 aria-hidden="true" />
        {text.open}
      </Button>
      {isOpen && <RefundDialog call={call} onClose={() => setOpen(false)} />}
    </>
  );
}

function RefundDialog({ call, onClose }: { call: CallRecord; onClose: () => void }) {
  const { refund: text, accounts } = useText();
  const { callId, accountId, cost } = call;
  const [amount, setAmount] = useState(() => decimalUsd(nanosOf(cost)));
  const [reference, setReference] = useState(newReference);
  const nanos = parseUsd(amount) ?? 0n;
  const done = useDone();
  const refund = useMutation(BillingService.method.refund, {
    onSuccess: async ({ replayed }) => {
      onClose();
      await done(replayed ? accounts.replayed : text.done(usd(nanos)));
    },
  });
  const submit = (): void => {
    if (nanos > 0n) refund.mutate({ accountId, callId, amount: moneyOf(nanos), reference });
  };
  return (
    <FormDialog
      onClose={onClose}
      title={text.title}
      description={text.text}
      onSubmit={submit}
      submit={text.submit}
      isBusy={refund.isPending}
      error={refund.error}
    >
      <TextField
        label={accounts.amount}
        error={nanos > 0n ? undefined : accounts.amountWrong}
        value={amount}
        inputMode="decimal"
        required
        autoFocus
        onChange={(event) => setAmount(event.target.value)}
      />
      <ReferenceField value={reference} onChange={setReference} />
    </FormDialog>
  );
}
