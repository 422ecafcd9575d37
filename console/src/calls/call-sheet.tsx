/**
 * One call in detail: what it was, what it cost and why, what happened when, and what to do where
 * it failed.
 */
import { useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { CallEvent, CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { AccountIdLink } from "../accounts/account.tsx";
import { apiOrigin } from "../common/api.ts";
import { errorWord, millis } from "../common/contract.ts";
import { type Texts, useText } from "../common/language.tsx";
import { nanosOf, usd } from "../common/money.ts";
import { useSession } from "../common/session.tsx";
import { durationText, exactTimeText, msOf } from "../common/time.ts";
import { useKeyNames } from "../keys/keys.tsx";
import { type CallField, callFields } from "../text/call-fields.ts";
import { Facts, Skeleton } from "../ui/card.tsx";
import { CodeBlock, Id } from "../ui/code.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { Amount, Badge, ErrorNote, Time } from "../ui/show.tsx";
import { callCurl, tasksPath } from "../common/call-snippet.ts";
import { didFail, EndingBadge } from "./columns.tsx";
import { RefundButton, ReceiptView } from "./receipt.tsx";

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
        [common.key, keyNames.get(call.keyId) ?? <Id key="key" value={call.keyId} />],
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
        ...callFields.flatMap((field) => {
          const value = plainValue(field, call[field], text);
          return value === undefined ? [] : [[text.fields[field], value] as const];
        }),
      ]}
    />
  );
}

/** A field as it is. Undefined if it is empty. */
function plainValue(
  field: CallField,
  value: CallRecord[CallField],
  text: Texts["calls"],
): ReactNode | undefined {
  if (typeof value === "boolean") return value ? text.yes : text.no;
  if (value.length === 0) return undefined;
  if (typeof value !== "string") return value.join(", ");
  return field.endsWith("Id") ? <Id key={field} isWhole value={value} /> : value;
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
