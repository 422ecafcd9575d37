/** Upstream vendors, for operators: health, configuration and test calls. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, Network, SlidersHorizontal, Zap } from "lucide-react";
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
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, CardHead, Empty, Facts, PageHead, Skeleton } from "../ui/card.tsx";
import { RateLines } from "../ui/rate-fields.tsx";
import { Badge, ErrorNote, Share, Time } from "../ui/show.tsx";
import { Table } from "../ui/table.tsx";

/** Refresh interval of the vendors. */
const refreshMs = 15_000;

/** Refresh interval of their routes: breakers change within a second. */
const routesRefreshMs = 1_000;

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
  const health = useQuery(
    RouteService.method.getRouteHealth,
    {},
    { refetchInterval: routesRefreshMs },
  );
  return (
    <>
      <PageHead title={text.title} hint={text.hint} />
      {health.error !== null && (
        <ErrorNote error={health.error} onRetry={() => void health.refetch()} />
      )}
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
            data.vendors.map((vendor) => (
              <VendorCard
                key={vendor.vendor}
                vendor={vendor}
                routes={health.data?.routes.filter((route) => route.vendor === vendor.vendor)}
              />
            ))
          )}
        </div>
      )}
    </>
  );
}

/** A vendor with its health, its configuration and a test. */
function VendorCard({ vendor, routes }: { vendor: VendorState; routes: Routes }) {
  return (
    <Card className="min-w-0">
      <CardHead
        title={vendor.vendor}
        hint={<span className="font-mono text-xs">{vendor.kind}</span>}
        actions={<Health routes={routes} />}
      />
      <Recent vendor={vendor} routes={routes} />
      <div className="px-5 py-4">
        <Configured vendor={vendor} routes={routes} />
      </div>
      <RouteTable vendor={vendor.vendor} routes={routes} />
      <VendorTest vendor={vendor.vendor} />
    </Card>
  );
}

/** The routes of a vendor, then its credentials; `undefined` while they are loaded. */
type Routes = readonly RouteHealth[] | undefined;

/** The attempts of a vendor: each counts for its route and for its credential. */
function attemptsOf(routes: Routes) {
  const own = (routes ?? []).filter(({ model }) => model !== "");
  const sum = (countOf: (route: RouteHealth) => number): number =>
    own.reduce((total, route) => total + countOf(route), 0);
  return {
    attempts: sum(({ attemptCount }) => attemptCount),
    failed: sum(({ failedCount }) => failedCount),
  };
}

/**
 * The share of failed attempts from which a vendor is shown as failing, and as having some
 * failures.
 */
const failingPart = 0.5;
const unsteadyPart = 0.02;

/** By its attempts, not by its calls: calls that another vendor answered have failed here. */
function Health({ routes }: { routes: Routes }) {
  const { vendors: text } = useText();
  if (routes === undefined) return null;
  const { attempts, failed } = attemptsOf(routes);
  const isOpen = routes.some(({ breaker }) => breaker !== BreakerState.CLOSED);
  if (attempts === 0 && !isOpen) return <Badge tone="neutral">{text.idle}</Badge>;
  if (attempts > 0 && failed / attempts >= failingPart) {
    return <Badge tone="bad">{text.failing}</Badge>;
  }
  if (isOpen || failed / attempts >= unsteadyPart) {
    return <Badge tone="warn">{text.unsteady}</Badge>;
  }
  return <Badge tone="good">{text.healthy}</Badge>;
}

function Recent({
  vendor: { recent, inFlight, inFlightLimit },
  routes,
}: {
  vendor: VendorState;
  routes: Routes;
}) {
  const { vendors: text } = useText();
  const first = recent?.firstContentDuration;
  const { attempts, failed } = attemptsOf(routes);
  const figures: readonly (readonly [string, ReactNode])[] = [
    [text.attempts, attempts.toLocaleString()],
    [
      text.failed,
      <span key="failed" className={failed > 0 ? "text-bad" : ""}>
        {failed.toLocaleString()}
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

function Configured({ vendor, routes }: { vendor: VendorState; routes: Routes }) {
  const { vendors: text } = useText();
  const { baseUrl, hasCredential, models, line, recent, unlimitedModels } = vendor;
  return (
    <Facts
      rows={[
        [text.lastFailure, <LastFailure key="failure" vendor={vendor} routes={routes} />],
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
function RouteTable({ vendor, routes }: { vendor: string; routes: Routes }) {
  const { vendors: text } = useText();
  return (
    <Table
      label={`${vendor}: ${text.routes}`}
      columns={[
        {
          id: "route",
          title: text.route,
          cell: (row) => (
            <span className="block min-w-28">
              <span className="font-mono text-xs wrap-anywhere">{row.model || row.credential}</span>
              {row.model === "" && <CredentialLines credential={row} all={routes ?? []} />}
            </span>
          ),
        },
        { id: "breaker", title: text.breaker, cell: (row) => <Breaker health={row} /> },
        {
          id: "attempts",
          title: text.failedAttempts,
          isNumber: true,
          cell: ({ attemptCount, failedCount }) => (
            <span className="whitespace-nowrap">
              {text.failedOf(failedCount.toLocaleString(), attemptCount.toLocaleString())}
            </span>
          ),
        },
        {
          id: "pace",
          title: text.pace,
          isNumber: true,
          from: "sm",
          cell: ({ medianDuration, slowDuration }) =>
            medianDuration === undefined || slowDuration === undefined ? (
              "—"
            ) : (
              <span className="whitespace-nowrap">
                {durationText(Math.round(durationMs(medianDuration)))} /{" "}
                {durationText(Math.round(durationMs(slowDuration)))}
              </span>
            ),
        },
      ]}
      rows={routes}
      keyOf={({ model, credential }) => `${model} ${credential}`}
      empty={text.noRoutes}
    />
  );
}

/** The configuration of a credential; its share only if the vendor has several. */
function CredentialLines({
  credential,
  all,
}: {
  credential: RouteHealth;
  all: readonly RouteHealth[];
}) {
  const { vendors: text } = useText();
  const credentials = all.filter(({ model }) => model === "");
  return (
    <>
      <span className="block text-xs text-muted">{text.credential}</span>
      {credentials.length > 1 && (
        <span className="block text-xs text-muted">
          <Share target={credential} all={credentials} />
        </span>
      )}
      <RateLines limits={credential.rateLimits} />
    </>
  );
}

function Breaker({ health: { breaker, breakerFailure, probeTime } }: { health: RouteHealth }) {
  const { vendors: text } = useText();
  if (breaker === BreakerState.CLOSED) return <Badge tone="good">{text.closed}</Badge>;
  const isOpen = breaker === BreakerState.OPEN;
  return (
    <span>
      <Badge tone={isOpen ? "bad" : "warn"}>{isOpen ? text.open : text.halfOpen}</Badge>
      <span className="mt-0.5 block text-xs text-muted">
        {text.failures[breakerFailure] ?? breakerFailure}
        {isOpen && probeTime !== undefined && (
          <span className="block">
            {text.probe} <Time isRelative time={probeTime} />
          </span>
        )}
      </span>
    </span>
  );
}

/** Of all processes by the attempts; of tasks, by the process that answers. */
function LastFailure({ vendor, routes }: { vendor: VendorState; routes: Routes }) {
  const { vendors: text } = useText();
  const [last] = [vendor, ...(routes ?? [])]
    .filter(({ failureTime }) => failureTime !== undefined)
    .toSorted((a, b) => failedMs(b) - failedMs(a));
  const { failure, failureTime } = last ?? {};
  if (failureTime === undefined) return <span className="text-muted">{text.neverFailed}</span>;
  return (
    <span>
      <span className="font-mono text-xs text-bad">{failure}</span>{" "}
      <Time isRelative time={failureTime} />
    </span>
  );
}

function failedMs({ failureTime }: Pick<RouteHealth, "failureTime">): number {
  return failureTime === undefined ? 0 : msOf(failureTime);
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

/** A button that makes a test call, its result, and a link to the form of the vendor. */
function VendorTest({ vendor }: { vendor: string }) {
  const { vendors: text, layout } = useText();
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
      <Link
        to="/configuration"
        search={{ tab: "vendors", entry: vendor }}
        aria-label={`${layout.configuration}: ${vendor}`}
        className={buttonClass()}
      >
        <SlidersHorizontal aria-hidden="true" />
        {layout.configuration}
      </Link>
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
