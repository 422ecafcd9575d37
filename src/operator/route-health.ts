/**
 * The health of routes and credentials, from the attempts in the records of calls: the same for all
 * processes, and across restarts. SQL because it reads the newest calls as a set.
 */
import type { Pool } from "pg";
import type { AttemptRow } from "../billing/calls/call-row.ts";
import type { Config, ModelConfig } from "../config/config.ts";
import { breakerDefault } from "../config/routing.ts";
import { firstId } from "../db/partition.ts";
import { type AttemptFailure, Breaker } from "../routing/breaker.ts";

/** Names a route (`credential` is empty) or a credential (`model` is empty). */
export interface TargetName {
  readonly vendor: string;
  /** The vendor's name of the model. */
  readonly model: string;
  readonly credential: string;
}

/** The health of a route or credential, by the newest calls of the last 15 minutes. */
export interface RecordedHealth {
  attempts: number;
  failures: number;
  /** Times to the answer in milliseconds. */
  readonly durationsMs: number[];
  lastFailure: { readonly failure: string; readonly timeMs: number } | undefined;
  /**
   * The breaker that a process would have if it had made all these attempts. Its times are of the
   * calls' start.
   */
  readonly breaker: Breaker;
}

/** Maximum age of the calls that are read, and their maximum number. */
const recentMs = 15 * 60_000;
const callsMax = 10_000;

/** `answered`: the vendor sent content, or refused the request as invalid. */
const callsSql = `
  select model, vendor, attempts, first_byte_ms, (extract(epoch from start_time) * 1000)::float8 as start_ms,
      first_byte_ms > 0 or ending = 3 as answered
    from (select * from call where id >= $1 order by id desc limit ${callsMax}) newest
    where vendor <> '' order by id`;

interface CallFacts {
  readonly model: string;
  readonly vendor: string;
  readonly attempts: readonly AttemptRow[] | null;
  readonly first_byte_ms: number;
  readonly start_ms: number;
  readonly answered: boolean;
}

/** Reads the health of all routes and credentials that were used lately, by {@link targetKey}. */
export async function readRouteHealth(
  pool: Pick<Pool, "query">,
  config: Pick<Config, "models" | "vendors">,
  nowMs: number,
): Promise<ReadonlyMap<string, RecordedHealth>> {
  const from = firstId(new Date(nowMs - recentMs));
  const { rows } = await pool.query<CallFacts>(callsSql, [from]);
  const found = new Map<string, RecordedHealth>();
  for (const call of rows) {
    for (const attempt of attemptsOf(call, config)) {
      for (const name of namesOf(attempt)) {
        const health = found.getOrInsertComputed(targetKey(name), () => newHealth(config, name));
        count(health, name, { attempt, startMs: call.start_ms });
      }
    }
  }
  return found;
}

/** A text for each route or credential. */
export function targetKey({ vendor, model, credential }: TargetName): string {
  return JSON.stringify([vendor, model, credential]);
}

/**
 * The attempts of a call. Without a choice, the answered one is not in its record, but the
 * configuration has it.
 */
function attemptsOf(call: CallFacts, { models, vendors }: Pick<Config, "models" | "vendors">) {
  const attempts = call.attempts ?? [];
  const isRecorded = attempts.some(({ error_code: code }) => code === undefined);
  const model = models.get(call.model);
  const route = model && onlyRoute(model, call.vendor);
  if (!call.answered || isRecorded || route === undefined) return attempts;
  const [credential] = vendors.get(call.vendor)?.credentials ?? [];
  const answered: AttemptRow = {
    vendor: call.vendor,
    model: route.model,
    credential: credential?.name ?? "",
    duration_ms: call.first_byte_ms,
  };
  return [...attempts, answered];
}

function onlyRoute({ routes }: ModelConfig, vendor: string) {
  const [first, ...others] = routes.filter((each) => each.vendor === vendor);
  return others.length === 0 ? first : undefined;
}

function namesOf({ vendor, model = "", credential = "" }: AttemptRow): readonly TargetName[] {
  return [
    ...(model === "" ? [] : [{ vendor, model, credential: "" }]),
    ...(credential === "" ? [] : [{ vendor, model: "", credential }]),
  ];
}

function newHealth({ vendors }: Pick<Config, "vendors">, { vendor }: TargetName): RecordedHealth {
  return {
    attempts: 0,
    failures: 0,
    durationsMs: [],
    lastFailure: undefined,
    breaker: new Breaker(vendors.get(vendor)?.breaker ?? breakerDefault, () => 0.5),
  };
}

function count(
  health: RecordedHealth,
  { credential }: TargetName,
  { attempt, startMs }: { readonly attempt: AttemptRow; readonly startMs: number },
): void {
  const { failure, error_code: code, duration_ms: durationMs } = attempt;
  health.attempts++;
  if (code === undefined) {
    health.durationsMs.push(durationMs);
    health.breaker.succeeded(startMs);
    return;
  }
  health.failures++;
  health.lastFailure = { failure: failure ?? code, timeMs: startMs };
  // A refused credential is no sign of the route's health, and other failures are no sign of the
  // credential's.
  const isOfCredential = failure === "credential";
  const isOpening = failure !== undefined && !harmless.has(failure);
  if (isOpening && isOfCredential === (credential !== "")) {
    health.breaker.failed(failure as AttemptFailure, startMs);
  }
}

/** Failures that open no breaker. */
const harmless: ReadonlySet<string> = new Set([
  "rate_limit",
  "overloaded",
  "limited",
  "context",
  "unfit",
] satisfies AttemptFailure[]);

/**
 * A percentile of times; undefined if there are none.
 *
 * @param part for example 0.95
 */
export function percentile(values: readonly number[], part: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)];
}
