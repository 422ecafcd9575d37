/** Upstream vendors, for operators: health, configuration and test calls. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, Network, Zap } from "lucide-react";
import type { ReactNode } from "react";
import type { VendorState } from "../../../gen/uas/operator/v1/operator_pb.ts";
import {
  OperatorService,
  type TestVendorResponse,
} from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import {
  BreakerState,
  type RouteHealth,
  RouteService,
} from "../../../gen/uas/operator/v1/route_service_pb.ts";
import { useText } from "../common/language.tsx";
import { durationText, msOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty, Facts, PageHead, Skeleton } from "../ui/card.tsx";
import { Badge, ErrorNote, Time } from "../ui/show.tsx";
import { Table } from "../ui/table.tsx";

/** How often the vendors are fetched, in milliseconds. */
const refreshMs = 15_000;

/** The most vendors that are fetched. */
const vendorsMax = 1_000;

/** `/vendors`, for operators. */
export function VendorsPage() {
  const { vendors: text } = useText();
  const { data, error, refetch } = useQuery(
    OperatorService.method.listVendors,
    { pageSize: vendorsMax },
    { refetchInterval: refreshMs },
  );
  return (
    <>
      <PageHead title={text.title} hint={text.hint} />
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {error === null && data?.vendors.length === 0 && (
        <Card>
          <Empty icon={<Network />} title={text.empty} hint={text.emptyHint} />
        </Card>
      )}
      {error === null && (
        <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-2">
          {data === undefined ? (
            <>
              <Skeleton className="h-80" />
              <Skeleton className="h-80" />
            </>
          ) : (
            data.vendors.map((vendor) => <VendorCard key={vendor.vendor} vendor={vendor} />)
          )}
        </div>
      )}
    </>
  );
}

/** A vendor with its health, its configuration and a test. */
function VendorCard({ vendor }: { vendor: VendorState }) {
  return (
    <Card className="min-w-0">
      <CardHead
        title={vendor.vendor}
        hint={<span className="font-mono text-xs">{vendor.kind}</span>}
        actions={<Health vendor={vendor} />}
      />
      <Recent vendor={vendor} />
      <div className="px-5 py-4">
        <Configured vendor={vendor} />
      </div>
      <Routes vendor={vendor.vendor} />
      <VendorTest vendor={vendor.vendor} />
    </Card>
  );
}

/** The share of failed calls from which a vendor is shown as failing, and as having some failures. */
const failingPart = 0.5;
const unsteadyPart = 0.02;

function Health({ vendor: { recent, failureTime, successTime } }: { vendor: VendorState }) {
  const { vendors: text } = useText();
  const calls = recent?.callCount ?? 0;
  if (calls === 0) return <Badge tone="neutral">{text.idle}</Badge>;
  const failedPart = (recent?.failedCount ?? 0) / calls;
  const isLastFailed =
    failureTime !== undefined &&
    (successTime === undefined || msOf(failureTime) > msOf(successTime));
  if (failedPart >= failingPart) return <Badge tone="bad">{text.failing}</Badge>;
  if (failedPart >= unsteadyPart || isLastFailed) return <Badge tone="warn">{text.unsteady}</Badge>;
  return <Badge tone="good">{text.healthy}</Badge>;
}

function Recent({ vendor: { recent, inFlight, inFlightLimit } }: { vendor: VendorState }) {
  const { vendors: text } = useText();
  const first = recent?.firstContentDuration;
  const figures: readonly (readonly [string, ReactNode])[] = [
    [text.calls, (recent?.callCount ?? 0).toLocaleString()],
    [
      text.failed,
      <span key="failed" className={recent?.failedCount ? "text-bad" : ""}>
        {(recent?.failedCount ?? 0).toLocaleString()}
      </span>,
    ],
    [text.firstContent, first === undefined ? "—" : durationText(Math.round(durationMs(first)))],
    [
      text.inFlight,
      <>
        {inFlight}
        {inFlightLimit > 0 && (
          <span className="text-xs font-normal text-muted"> {text.ofLimit(inFlightLimit)}</span>
        )}
      </>,
    ],
  ];
  return (
    <dl className="grid grid-cols-2 gap-px border-y border-line bg-line sm:grid-cols-4">
      {figures.map(([label, value]) => (
        <div key={label} className="min-w-0 bg-surface px-5 py-3">
          <dt className="text-xs text-muted">{label}</dt>
          <dd className="mt-0.5 truncate text-lg font-semibold tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Configured({ vendor }: { vendor: VendorState }) {
  const { vendors: text } = useText();
  const { baseUrl, hasCredential, models, line, recent, unlimitedModels } = vendor;
  return (
    <Facts
      rows={[
        [text.lastFailure, <LastFailure key="failure" vendor={vendor} />],
        ...(recent === undefined || recent.failedRequestId === ""
          ? []
          : [
              [
                "",
                <Link
                  key="call"
                  to="/all-calls"
                  search={{ request: recent.failedRequestId }}
                  className="text-accent underline underline-offset-4"
                >
                  {text.failedCall}
                </Link>,
              ] as const,
            ]),
        [text.lastSuccess, <LastSuccess key="success" vendor={vendor} />],
        ...(baseUrl === "" ? [] : [[text.address, baseUrl] as const]),
        [text.credential, hasCredential ? text.hasCredential : text.noCredential],
        [
          text.models,
          <span key="models" className="font-mono text-xs">
            {models.join(", ")}
          </span>,
        ],
        ...unlimitedModels.map(
          ({ model, limitTokens, outputTokens }) =>
            [
              text.ignoresLimits,
              <span key={model} className="text-bad">
                <span className="font-mono text-xs">{model}</span>{" "}
                {text.ignoredLimit(limitTokens.toLocaleString(), outputTokens.toLocaleString())}{" "}
                <ClearUnlimited vendor={vendor.vendor} model={model} />
              </span>,
            ] as const,
        ),
        ...(line === 0 ? [] : [[text.place, text.line(line)] as const]),
      ]}
    />
  );
}

/** A button that clears the mark of a model that ignored a limit. */
function ClearUnlimited({ vendor, model }: { vendor: string; model: string }) {
  const { vendors: text } = useText();
  const queries = useQueryClient();
  const clear = useMutation(OperatorService.method.clearUnlimitedModel, {
    onSettled: () => queries.invalidateQueries(),
  });
  return (
    <>
      <Button
        isBusy={clear.isPending}
        aria-label={`${text.clearMark}: ${model}`}
        title={text.clearMarkHint}
        onClick={() => clear.mutate({ vendor, model })}
      >
        {text.clearMark}
      </Button>
      <ErrorNote error={clear.error} />
    </>
  );
}

/** The routes and credentials of a vendor, by their attempts in all processes. */
function Routes({ vendor }: { vendor: string }) {
  const { vendors: text } = useText();
  const { data } = useQuery(
    RouteService.method.getRouteHealth,
    { vendor },
    { refetchInterval: refreshMs },
  );
  return (
    <Table
      label={text.routes}
      columns={[
        {
          id: "route",
          title: text.route,
          cell: ({ model, credential }) => (
            <span className="font-mono text-xs">
              {model || `${text.credential}: ${credential}`}
            </span>
          ),
        },
        { id: "breaker", title: text.breaker, cell: (row) => <Breaker health={row} /> },
        {
          id: "attempts",
          title: text.attempts,
          isNumber: true,
          cell: ({ attemptCount, failedCount }) =>
            text.failedOf(failedCount.toLocaleString(), attemptCount.toLocaleString()),
        },
        {
          id: "pace",
          title: text.firstContent,
          isNumber: true,
          from: "sm",
          cell: ({ medianDuration }) =>
            medianDuration === undefined
              ? "—"
              : durationText(Math.round(durationMs(medianDuration))),
        },
      ]}
      rows={data?.routes}
      keyOf={({ model, credential }) => `${model} ${credential}`}
      empty={text.noRoutes}
    />
  );
}

function Breaker({ health: { breaker, breakerFailure } }: { health: RouteHealth }) {
  const { vendors: text } = useText();
  if (breaker === BreakerState.CLOSED) return <Badge tone="good">{text.closed}</Badge>;
  const isOpen = breaker === BreakerState.OPEN;
  return (
    <span>
      <Badge tone={isOpen ? "bad" : "warn"}>{isOpen ? text.open : text.halfOpen}</Badge>{" "}
      <span className="font-mono text-xs text-muted">{breakerFailure}</span>
    </span>
  );
}

function LastFailure({ vendor: { failure, failureTime } }: { vendor: VendorState }) {
  const { vendors: text } = useText();
  if (failureTime === undefined) return <span className="text-muted">{text.neverFailed}</span>;
  return (
    <span>
      <span className="font-mono text-xs text-bad">{failure}</span>{" "}
      <Time isRelative time={failureTime} />
    </span>
  );
}

function LastSuccess({ vendor: { successTime, successDuration } }: { vendor: VendorState }) {
  const { vendors: text } = useText();
  return (
    <span>
      <Time isRelative time={successTime} />{" "}
      {successDuration !== undefined && (
        <span className="text-muted">
          {text.after(durationText(Math.round(durationMs(successDuration))))}
        </span>
      )}
    </span>
  );
}

/** A button that makes a test call, and its result. */
function VendorTest({ vendor }: { vendor: string }) {
  const { vendors: text } = useText();
  const queries = useQueryClient();
  const test = useMutation(OperatorService.method.testVendor, {
    onSettled: () => queries.invalidateQueries(),
  });
  const label = test.data === undefined ? text.test : text.testAgain;
  return (
    <div className="flex flex-wrap items-center gap-3 border-t border-line px-5 py-3">
      <Button
        isBusy={test.isPending}
        aria-label={`${label}: ${vendor}`}
        onClick={() => test.mutate({ vendor })}
      >
        <Zap aria-hidden="true" />
        {label}
      </Button>
      <div role="status" className="min-w-0 flex-1">
        {test.data !== undefined && <Outcome outcome={test.data} />}
        <ErrorNote error={test.error} />
      </div>
    </div>
  );
}

function Outcome({
  outcome: { ok, modelKey, duration, text: said, error },
}: {
  outcome: TestVendorResponse;
}) {
  const { vendors: text } = useText();
  const time = durationText(duration === undefined ? 0 : Math.round(durationMs(duration)));
  const Icon = ok ? CircleCheck : CircleX;
  return (
    <div className="flex items-start gap-2 text-[0.8125rem]">
      <Icon
        aria-hidden="true"
        className={`mt-0.5 size-4 shrink-0 ${ok ? "text-good" : "text-bad"}`}
      />
      <div className="min-w-0">
        <p className="font-medium">
          {ok ? text.testOk(modelKey, time) : text.testFailed(modelKey)}
        </p>
        <p className="break-words text-muted">{ok ? `“${said}”` : error}</p>
      </div>
    </div>
  );
}
