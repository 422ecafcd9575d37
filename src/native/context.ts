/**
 * The context of native calls: the mounted vendor APIs, the services of other rooms, and one
 * request.
 */
import type { HeaderList, NativeMount } from "./mount.ts";
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { Ledger } from "../billing/ledger/ledger.ts";
import type { Refusals } from "../calls/pipeline/refusals.ts";
import type { Clock } from "../core/clock.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Admission } from "../calls/admission.ts";
import type { Catalogue } from "../calls/catalogue.ts";
import type { InferenceHandlers } from "../calls/handlers.ts";
import type { JobRouting } from "../routing/job-routing.ts";
import type { RunningCalls } from "../calls/running-calls.ts";
import type { ExternalTasks } from "../task/work/external.ts";
import type { JobTracker } from "./job-tracker.ts";
import type { Links } from "./links.ts";
import type { KeyRef } from "../core/caller.ts";
import type { FindNativeModel } from "./models.ts";
import type { Uploads } from "./uploads.ts";
import type { VersionLookup } from "./versions.ts";

/** Functions of other rooms that the handlers use. */
export interface NativeContext {
  readonly clock: Clock;
  /** By prefix. */
  readonly vendors: ReadonlyMap<string, NativeMount>;
  readonly findModel: FindNativeModel;
  readonly versions: VersionLookup;
  readonly admission: Admission;
  readonly catalogue: Catalogue;
  readonly handlers: Pick<InferenceHandlers, "runAdapter">;
  readonly calls: RunningCalls;
  readonly ledger: Pick<Ledger, "record">;
  readonly refusals: Pick<Refusals, "passes">;
  readonly pool: Pool;
  readonly external: ExternalTasks;
  readonly jobTracker: JobTracker;
  /** Chooses the credentials of jobs. */
  readonly routing: JobRouting;
  readonly links: Links;
  readonly uploads: Uploads;
  /** Whether a key can still be used. */
  readonly isKeyUsable: (key: KeyRef) => Promise<boolean>;
  /** Hosts of callbacks that are exempt from the public-address rule. */
  readonly allowHosts: readonly string[];
  readonly metrics: Metrics;
  readonly log: Logger;
  /** The gateway's address for customers, without a trailing slash; known once it listens. */
  readonly publicUrl: () => string;
}

type Headers = Readonly<Record<string, string>>;

/**
 * Headers that are never forwarded, regardless of a table: credentials, and headers of one
 * connection.
 */
const never =
  /^(?:authorization|proxy-.*|cookie|set-cookie2?|x-api-key|api-key|x-goog-api-key|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-encoding|content-length|expect|forwarded|x-forwarded-.*|location|server|via|x-request-id|request-id)$/;

/** Creates an allow list of headers; `x-goog-upload-*` means all with that prefix. */
export function headerList(names: readonly string[]): HeaderList {
  const whole = new Set(names.filter((name) => !name.endsWith("*")));
  const starts = names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return (name) =>
    (whole.has(name) || starts.some((start) => name.startsWith(start))) && !never.test(name);
}

/** The headers that pass an allow list. */
export function passHeaders(headers: Headers, list: HeaderList): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => list(name)));
}
