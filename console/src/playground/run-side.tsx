/** The column next to a run: its cost, its settings, its tools, and the equivalent code. */
import { useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import type { CodeVersion } from "../common/snippets.ts";
import { durationText } from "../common/time.ts";
import { buttonClass } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { Amount } from "../ui/show.tsx";
import { millis } from "../common/contract.ts";

/** The column. Cards in `more` are between the settings and the code. */
export function RunSide({
  requestId,
  code,
  codeHint,
  more,
  children,
}: {
  /** The request id of the last run. Empty: there was none. */
  requestId: string;
  code: readonly CodeVersion[];
  /** The description of the request that the code makes. */
  codeHint: string;
  /** Cards between the settings and the code. */
  more?: ReactNode;
  /** The settings. */
  children?: ReactNode;
}) {
  const { playground: text } = useText();
  return (
    <div className="flex min-w-0 flex-col gap-6">
      {requestId !== "" && <Cost requestId={requestId} />}
      {children !== undefined && (
        <Card>
          <CardHead title={text.settings} />
          <div className="flex flex-col gap-4 px-5 pb-5">{children}</div>
        </Card>
      )}
      {more}
      <Card>
        <CardHead title={text.code} hint={codeHint} />
        <div className="px-5 pb-5">
          <CodeTabs label={text.code} versions={code} />
        </div>
      </Card>
    </div>
  );
}

/** The tokens of a call, if it had any, and its duration. */
function spentText({ usage, duration: took }: CallRecord): string {
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
  const duration = durationText(millis(took));
  if (inputTokens + outputTokens === 0) return duration;
  return `${inputTokens.toLocaleString()} → ${outputTokens.toLocaleString()} · ${duration}`;
}

/** Interval at which the call is fetched until it is recorded. */
const lookMs = 500;

/** The cost of the last run, which is recorded a moment after its end. */
function Cost({ requestId }: { requestId: string }) {
  const { playground: text, overview } = useText();
  const accountId = useAccountId();
  const { data } = useQuery(
    CallService.method.listCalls,
    requestId === "" ? skipToken : { accountId, filter: { requestId }, pageSize: 1 },
    {
      staleTime: 0,
      refetchInterval: ({ state }) => (state.data?.calls.length ?? 0) === 0 && lookMs,
    },
  );
  const call = data?.calls[0];
  return (
    <Card className="px-5 py-4">
      <p className="text-[0.8125rem] text-muted">{text.cost}</p>
      <div role="status" className="mt-1 flex items-end justify-between gap-3">
        <div>
          <p className="text-2xl font-semibold tracking-tight">
            <Amount money={call?.cost} />
          </p>
          <p className="mt-1 text-xs text-muted">{call !== undefined && spentText(call)}</p>
        </div>
        {call !== undefined && (
          <Link to="/calls" search={{ call: call.callId }} className={buttonClass()}>
            {overview.openCall}
          </Link>
        )}
      </div>
    </Card>
  );
}
