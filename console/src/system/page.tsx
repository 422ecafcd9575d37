/** System status, for operators: versions, queues, ledger audit, processes, migrations. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { CircleCheck, Hourglass, Scale, TriangleAlert } from "lucide-react";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import type { ProcessInfo, QueueDepth } from "../../../gen/uas/operator/v1/operator_pb.ts";
import {
  type GetSystemInfoResponse,
  OperatorService,
} from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { useNow } from "../common/clock.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { msOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty, Figure, PageHead, Skeleton } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Badge, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, Table } from "../ui/table.tsx";

/** Refresh interval of the status. */
const refreshMs = 10_000;

/** `/system`, for operators. */
export function SystemPage() {
  const { system: text } = useText();
  const { data, error, refetch } = useQuery(
    OperatorService.method.getSystemInfo,
    {},
    { refetchInterval: refreshMs },
  );
  return (
    <>
      <PageHead title={text.title} hint={text.hint} />
      {error === null ? (
        <div className="flex flex-col gap-6">
          <Versions info={data} />
          <div className="grid grid-cols-1 gap-6 lg:grid-cols-2">
            <Queues queues={data?.queues} />
            <LedgerAuditCard />
          </div>
          <ProcessesCard processes={data?.processes} />
          <Migrations info={data} />
        </div>
      ) : (
        <ErrorNote error={error} onRetry={() => void refetch()} />
      )}
    </>
  );
}

function Versions({ info }: { info: GetSystemInfoResponse | undefined }) {
  const { system: text } = useText();
  const waiting = <Skeleton className="mt-2 h-6 w-24" />;
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-2 xl:grid-cols-4">
      <Figure
        label={text.version}
        value={info?.version ?? waiting}
        note={
          info && (
            <>
              {text.started} <Time isRelative time={info.startTime} />
            </>
          )
        }
      />
      <Figure label={text.node} value={info?.nodeVersion.replace(/^v/, "") ?? waiting} />
      <Figure label={text.database} value={info?.databaseVersion.split(" ")[0] ?? waiting} />
      <Figure
        label={text.size}
        value={info ? bytesText(info.databaseBytes) : waiting}
        note={
          info &&
          info.callBytes > 0n &&
          text.growth(info.callBytes.toLocaleString(), bytesText(info.yearBytes))
        }
      />
    </div>
  );
}

/** `12.4 MB`. */
function bytesText(bytes: bigint): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = Number(bytes);
  let unit = 0;
  while (size >= 1_000 && unit < units.length - 1) {
    size /= 1_000;
    unit += 1;
  }
  return `${size.toFixed(size < 100 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

function Queues({ queues }: { queues: readonly QueueDepth[] | undefined }) {
  const texts = useText();
  const { system: text } = texts;
  return (
    <Card>
      <CardHead title={text.queues} hint={text.queuesHint} />
      <Table
        label={text.queues}
        columns={queueColumns(text)}
        rows={queues?.filter(({ count }) => count > 0n)}
        keyOf={({ queue, state }) => `${queue} ${state}`}
        empty={<Empty icon={<Hourglass />} title={text.noQueues} />}
      />
    </Card>
  );
}

function queueColumns(text: Texts["system"]): Column<QueueDepth>[] {
  return [
    {
      id: "queue",
      title: text.queue,
      cell: ({ queue }) => <span className="font-medium">{text.queueNames[queue] ?? queue}</span>,
    },
    {
      id: "state",
      title: text.state,
      cell: ({ state }) => <span className="font-mono text-xs">{state}</span>,
    },
    {
      id: "count",
      title: text.count,
      isNumber: true,
      cell: ({ count }) => count.toLocaleString(),
    },
    {
      id: "oldest",
      title: text.oldest,
      cell: ({ oldestTime }) => <Time isRelative time={oldestTime} />,
    },
  ];
}

function LedgerAuditCard() {
  const { system: text } = useText();
  const check = useMutation(BillingService.method.auditLedger);
  const findings = check.data?.findings;
  const checkpoint = check.data?.checkpoint;
  return (
    <Card>
      <CardHead
        title={text.ledger}
        hint={text.ledgerHint}
        actions={
          <Button isBusy={check.isPending} onClick={() => check.mutate({})}>
            <Scale aria-hidden="true" />
            {text.check}
          </Button>
        }
      />
      <div role="status" className="px-5 pb-5 empty:hidden">
        {check.error !== null && <ErrorNote error={check.error} />}
        {findings?.length === 0 && (
          <p className="flex items-center gap-2 font-medium text-good">
            <CircleCheck aria-hidden="true" className="size-4" />
            {text.ledgerRight}
          </p>
        )}
        {findings !== undefined && findings.length > 0 && (
          <>
            <p className="flex items-center gap-2 font-medium text-bad">
              <TriangleAlert aria-hidden="true" className="size-4" />
              {text.ledgerWrong(findings.length)}
            </p>
            <ul className="mt-2 flex flex-col gap-1 text-[0.8125rem]">
              {findings.map(({ rule, detail }) => (
                <li key={`${rule} ${detail}`} className="break-words">
                  <span className="font-mono text-xs font-semibold">{rule}</span> {detail}
                </li>
              ))}
            </ul>
          </>
        )}
        {checkpoint !== undefined && (
          <p className="mt-2 text-[0.8125rem] break-all text-muted">
            {text.checkpoint}{" "}
            <span className="font-mono text-xs">{`${checkpoint.number}:${checkpoint.hash}`}</span>
          </p>
        )}
      </div>
    </Card>
  );
}

function Migrations({ info }: { info: GetSystemInfoResponse | undefined }) {
  const { system: text } = useText();
  return (
    <Card>
      <CardHead title={text.migrations} hint={text.migrationsHint} />
      <Table
        label={text.migrations}
        columns={[
          {
            id: "name",
            title: text.migration,
            cell: ({ name }) => <span className="font-mono text-xs">{name}</span>,
          },
          {
            id: "time",
            title: text.done,
            isNumber: true,
            cell: ({ time }) => <Time time={time} />,
          },
        ]}
        rows={info?.migrations.toReversed()}
        keyOf={({ name }) => name}
        empty={null}
      />
    </Card>
  );
}

/** The heartbeat timeout of processes: after it, other processes end the holds of a lost one. */
const silentMs = 20_000;

function ProcessesCard({ processes }: { processes: readonly ProcessInfo[] | undefined }) {
  const { system: text } = useText();
  return (
    <Card>
      <CardHead title={text.processes} hint={text.processesHint} />
      <Table
        label={text.processes}
        columns={processColumns(text)}
        rows={processes}
        keyOf={({ processId }) => processId}
        empty={null}
      />
    </Card>
  );
}

function processColumns(text: Texts["system"]): Column<ProcessInfo>[] {
  return [
    {
      id: "name",
      title: text.process,
      cell: ({ name, processId }) => (
        <span className="block max-w-40 truncate font-medium sm:max-w-72" title={processId}>
          {name || <Id value={processId} />}
        </span>
      ),
    },
    { id: "state", title: text.state, cell: (process) => <State process={process} /> },
    {
      id: "began",
      title: text.began,
      from: "sm",
      cell: ({ startTime }) => <Time isRelative time={startTime} />,
    },
    { id: "seen", title: text.seen, cell: ({ seenTime }) => <Time isRelative time={seenTime} /> },
  ];
}

function State({ process: { ended, seenTime } }: { process: ProcessInfo }) {
  const { system: text } = useText();
  const now = useNow();
  if (ended) return <Badge tone="neutral">{text.ended}</Badge>;
  const isSilent = seenTime === undefined || now - msOf(seenTime) > 2 * silentMs;
  return isSilent ? (
    <Badge tone="warn">{text.silent}</Badge>
  ) : (
    <Badge tone="good">{text.running}</Badge>
  );
}
