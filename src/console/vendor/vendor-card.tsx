/** One vendor: how it does, how it is configured, and a test of it. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { VendorState } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { useText } from "../language.tsx";
import { durationText, msOf } from "../time.ts";
import { Badge } from "../ui/badge.tsx";
import { Card, CardHead, Facts } from "../ui/card.tsx";
import { Time } from "../ui/show.tsx";
import { VendorTest } from "./vendor-test.tsx";

/** The card. */
export function VendorCard({ vendor }: { vendor: VendorState }) {
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
      <VendorTest vendor={vendor.vendor} />
    </Card>
  );
}

/** From which part of failed calls on a vendor counts as failing, and as unsteady. */
const failingPart = 0.5;
const unsteadyPart = 0.02;

function Health({ vendor: { recent, failureTime, successTime } }: { vendor: VendorState }) {
  const {
    operator: { vendors: text },
  } = useText();
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
  const {
    operator: { vendors: text },
  } = useText();
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
  const {
    operator: { vendors: text },
  } = useText();
  const { baseUrl, hasCredential, models, line, recent } = vendor;
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
        ...(line === 0 ? [] : [[text.place, text.line(line)] as const]),
      ]}
    />
  );
}

function LastFailure({ vendor: { failure, failureTime } }: { vendor: VendorState }) {
  const {
    operator: { vendors: text },
  } = useText();
  if (failureTime === undefined) return <span className="text-muted">{text.neverFailed}</span>;
  return (
    <span>
      <span className="font-mono text-xs text-bad">{failure}</span>{" "}
      <Time isRelative time={failureTime} />
    </span>
  );
}

function LastSuccess({ vendor: { successTime, successDuration } }: { vendor: VendorState }) {
  const {
    operator: { vendors: text },
  } = useText();
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
