/**
 * The gateway's metrics. Label values come from closed sets only (configured models and vendors,
 * routes of the contract, documented codes), so that no client can create a series.
 */
import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";

/** A metric at one moment, as workers send it to their supervisor. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>;

/** The metrics of one process. */
export type Metrics = ReturnType<typeof createMetrics>;

const overheadBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];
const durationBuckets = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/** A gauge that is read at each scrape. */
interface GaugeFacts {
  readonly help: string;
  /**
   * Combination of several workers' values: the maximum if all report the same value.
   * Default: the sum.
   */
  readonly aggregator?: "sum" | "max";
}

/** The gauges that are read at each scrape, by name. */
export const gauges = {
  uas_workers: { help: "Processes that serve calls." },
  uas_unready: {
    help: "1 if /readyz answered 503 at the scrape before. Alarm above 0.",
    aggregator: "max",
  },
  uas_data_free_bytes: {
    help: "Free space on the disk of the data folder.",
    aggregator: "max",
  },
  uas_data_size_bytes: {
    help: "Size of the disk of the data folder.",
    aggregator: "max",
  },
  uas_config_load_time_seconds: {
    help: "Time since unix epoch in seconds when the newest process loaded its configuration.",
    aggregator: "max",
  },
  uas_config_load_failed: {
    help: "1 if the last attempt to load another configuration failed. Alarm above 0.",
    aggregator: "max",
  },
  uas_config_file_differs: {
    help: "1 if the configuration file was edited and not loaded. 0 while a revision is in force.",
    aggregator: "max",
  },
  uas_calls_running: { help: "Running calls." },
  uas_replies_drained: { help: "Replies that are read on after their clients disconnected." },
  uas_websocket_connections: { help: "Open WebSocket connections." },
  uas_unfinished_body_bytes: {
    help: "Bytes of request bodies that have begun and are not complete.",
  },
  uas_billing_holds_open: { help: "Open holds of this process's calls." },
  uas_billing_settlements_waiting: {
    help: "Settlements that the database does not have yet. Alarm if it grows.",
  },
  uas_billing_journal_entries: {
    help: "Settlements in the journal that the database does not have yet.",
  },
  uas_billing_journal_bytes: { help: "Size of this process's settlement journal." },
  uas_billing_journal_failures: {
    help: "Failed writes to the settlement journal since the start. Alarm above 0.",
  },
  uas_ledger_audit_findings: {
    help: "Broken rules that this process's last hourly ledger audit found, at most 100. Alarm above 0.",
    aggregator: "max",
  },
  uas_call_records_dropped: {
    help: "Records of refused calls that were lost in an outage, since the start.",
  },
  uas_clock_offset_seconds: {
    help: "How far this machine's clock is ahead of the database's, compared every minute; negative: behind it.",
    aggregator: "max",
  },
  uas_task_polls_waiting: { help: "Polls and watches of tasks that wait for a change." },
  uas_tasks_under_way: {
    help: "Tasks that this process works on now, except those that wait for their vendors.",
  },
  uas_webhooks_sending: { help: "Webhooks that this process is sending." },
  uas_webhooks_pending: {
    help: "Webhooks that wait for their time, their receiver or a slot, of all processes.",
    aggregator: "max",
  },
  uas_webhook_endpoints_dead: {
    help: "Webhook receivers that failed for 120 hours, of all processes; their webhooks are parked.",
    aggregator: "max",
  },
} as const satisfies Readonly<Record<string, GaugeFacts>>;

/** The name of a gauge that is read at each scrape. */
export type GaugeName = keyof typeof gauges;

/**
 * Gauges of prom-client whose names end in `_total`, which only names of counters may. The sum of
 * `nodejs_active_resources` and its siblings has the same value.
 */
const miscalled = [
  "nodejs_active_resources_total",
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
];

/** Creates the metrics in a separate registry. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of miscalled) registry.removeSingleMetric(name);
  return {
    registry,
    ...edgeMetrics(registry),
    ...callMetrics(registry),
    ...upstreamMetrics(registry),
    ...taskMetrics(registry),
    ...signInMetrics(registry),
    ...workerMetrics(registry),
    webhookAttempts: new Counter({
      registers: [registry],
      name: "uas_webhook_attempts_total",
      help: "Attempts to deliver webhooks by outcome.",
      labelNames: ["outcome"],
    }),
    spansDropped: new Counter({
      registers: [registry],
      name: "uas_trace_spans_dropped_total",
      help: "Spans of traces that were lost: queue_full, or export: the collector refused them or did not answer.",
      labelNames: ["reason"],
    }),
    /** Registers a gauge that is read at each scrape. */
    gauge(name: GaugeName, read: () => number): void {
      const { help, aggregator = "sum" }: GaugeFacts = gauges[name];
      void new Gauge({
        registers: [registry],
        name,
        help,
        aggregator,
        collect() {
          this.set(read());
        },
      });
    },
  };
}

function edgeMetrics(registry: Registry) {
  const metrics = {
    configInfo: new Gauge({
      registers: [registry],
      name: "uas_config_info",
      help: "Processes in which the configuration with this hash is in force.",
      labelNames: ["source", "hash"],
    }),
    authFailures: new Counter({
      registers: [registry],
      name: "uas_auth_failures_total",
      help: "Refused API keys by true reason: missing, unknown, disabled, deleted, expired.",
      labelNames: ["reason"],
    }),
    limitRefusals: new Counter({
      registers: [registry],
      name: "uas_limit_refusals_total",
      help: "Calls refused by a limit: key_requests, key_tokens, key_concurrency, the same of account_, model_ and credential_ (the call then tries another one); of the process concurrent_calls, unfinished_bodies.",
      labelNames: ["limit"],
    }),
    requests: new Counter({
      registers: [registry],
      name: "uas_requests_total",
      help: "Answered REST requests by route of the contract and HTTP status; 499: the client disconnected before a status.",
      labelNames: ["route", "status"],
    }),
    requestsInFlight: new Gauge({
      registers: [registry],
      name: "uas_requests_in_flight",
      help: "REST requests in progress.",
    }),
  };
  /** Counts an answered request. */
  const countRequest = (route: string, status: number): void => {
    metrics.requests.inc({ route, status: String(status) });
  };
  return { ...metrics, countRequest };
}

function callMetrics(registry: Registry) {
  return {
    callDuration: new Histogram({
      registers: [registry],
      name: "uas_call_duration_seconds",
      help: "Duration of calls, from the read request to their end.",
      labelNames: ["model", "vendor", "ending"],
      buckets: durationBuckets,
    }),
    firstByte: new Histogram({
      registers: [registry],
      name: "uas_first_byte_seconds",
      help: "Time from the read request to the first byte of content.",
      labelNames: ["model", "vendor"],
      buckets: durationBuckets,
    }),
    overhead: new Histogram({
      registers: [registry],
      name: "uas_gateway_overhead_seconds",
      help: "Time added by the gateway: before the upstream request, including the hold, and before the first byte is forwarded.",
      buckets: overheadBuckets,
    }),
    tokens: new Counter({
      registers: [registry],
      name: "uas_tokens_total",
      help: "Tokens of charged calls by type: input, output.",
      labelNames: ["model", "type"],
    }),
    ...moneyMetrics(registry),
  };
}

function moneyMetrics(registry: Registry) {
  return {
    charged: new Counter({
      registers: [registry],
      name: "uas_billing_charged_usd_total",
      help: "Money charged, in USD; the ledger has the exact sum.",
      labelNames: ["model"],
    }),
    vendorCost: new Counter({
      registers: [registry],
      name: "uas_billing_vendor_cost_usd_total",
      help: "Vendor costs of calls and tasks, in USD, of routes with a configured cost.",
      labelNames: ["model", "vendor"],
    }),
    platformLoss: new Counter({
      registers: [registry],
      name: "uas_platform_loss_nanos_total",
      help: "Nano-USD that the platform lost by calls and tasks, by reason: shortfall, uncharged, below_cost, withheld, abandoned_attempt, implausible, late_charge.",
      labelNames: ["reason"],
    }),
    lowBalances: new Counter({
      registers: [registry],
      name: "uas_billing_low_balance_total",
      help: "Times that an account fell below its low-balance alert.",
    }),
    alertEmails: new Counter({
      registers: [registry],
      name: "uas_alert_emails_total",
      help: "Attempts to send an alert by e-mail: sent, refused for good, failed for now.",
      labelNames: ["outcome"],
    }),
    operatorAlerts: new Counter({
      registers: [registry],
      name: "uas_operator_alerts_total",
      help: "Alerts to operators by outcome of their delivery, after the last attempt: sent, failed.",
      labelNames: ["outcome"],
    }),
    refusedCalls: new Counter({
      registers: [registry],
      name: "uas_calls_refused_total",
      help: "Calls that were refused before a vendor was called, by error code; those without a record of their own too.",
      labelNames: ["reason"],
    }),
    refusedForBalance: new Counter({
      registers: [registry],
      name: "uas_billing_rejected_total",
      help: "Calls refused for their balance.",
    }),
  };
}

/**
 * Counts a vendor's charge beyond the charge of a call or task: all of it if the call was free. In
 * nano-USD.
 *
 * @param isWithheld whether a part of the reply was not delivered, because it could not be paid
 * for. Default false
 */
export function countVendorLoss(
  { platformLoss }: Metrics,
  costNanos: bigint,
  vendorCostNanos: bigint,
  isWithheld = false,
): void {
  if (vendorCostNanos <= costNanos) return;
  const delivered = costNanos === 0n ? "uncharged" : "below_cost";
  const reason = isWithheld ? "withheld" : delivered;
  platformLoss.inc({ reason }, Number(vendorCostNanos - costNanos));
}

function taskMetrics(registry: Registry) {
  return {
    tasks: new Gauge({
      registers: [registry],
      name: "uas_tasks",
      help: "Open tasks in all processes by state: queued, submitting, submit_unknown, running, finalizing.",
      labelNames: ["state"],
      aggregator: "max",
    }),
    taskQueueAge: new Gauge({
      registers: [registry],
      name: "uas_task_queue_age_seconds",
      help: "Age of the oldest task in state queued, in all processes; 0 if there is none.",
      aggregator: "max",
    }),
    taskSubmits: new Counter({
      registers: [registry],
      name: "uas_task_submits_total",
      help: "Submits of tasks to vendors by outcome: accepted, done, refused, later, unsent, unknown.",
      labelNames: ["vendor", "outcome"],
    }),
    tasksEnded: new Counter({
      registers: [registry],
      name: "uas_tasks_ended_total",
      help: "Tasks ended by this process, by status and error code. Compare those with upstream_submit_unknown with the vendor's invoice.",
      labelNames: ["status", "error_code"],
    }),
  };
}

/** Metrics about workers, counted by the supervisor; a process without one counts itself. */
export function workerMetrics(registry: Registry) {
  return {
    workerRestarts: new Counter({
      registers: [registry],
      name: "uas_worker_restarts_total",
      help: "Workers that died and were restarted. Alarm if it grows.",
    }),
  };
}

function signInMetrics(registry: Registry) {
  return {
    codesSent: new Counter({
      registers: [registry],
      name: "uas_sms_sends_total",
      help: "One-time codes by delivery result: sent, failed, limited, or capped: a limit for a country or for all is reached. Alarm above 0 for capped.",
      labelNames: ["outcome"],
    }),
    codeChecks: new Counter({
      registers: [registry],
      name: "uas_code_checks_total",
      help: "Checks of one-time codes: right, wrong, expired, blocked.",
      labelNames: ["outcome"],
    }),
    signIns: new Counter({
      registers: [registry],
      name: "uas_console_sign_ins_total",
      help: "Sign-ins to the console by method: code, password, link.",
      labelNames: ["method"],
    }),
  };
}

function upstreamMetrics(registry: Registry) {
  const metrics = {
    upstreamAttempts: new Counter({
      registers: [registry],
      name: "uas_upstream_attempts_total",
      help: "Requests to vendors by outcome: ok, refused, rate_limited, failed, timeout, connect, overloaded, aborted.",
      labelNames: ["vendor", "outcome"],
    }),
    upstreamAlarms: new Counter({
      registers: [registry],
      name: "uas_upstream_alarms_total",
      help: "Vendor replies that the operator must act on: credential, money, model, limit_ignored, usage_implausible, usage_unknown.",
      labelNames: ["vendor", "reason"],
    }),
  };
  const breakerState = new Gauge({
    registers: [registry],
    name: "uas_breaker_state",
    help: "Circuit breakers: 0 closed, 1 half-open, 2 open. A route has an empty credential, a credential an empty model.",
    labelNames: ["vendor", "model", "credential"],
    aggregator: "max",
  });
  /** Counts a request to a vendor. */
  const countAttempt = (vendor: string, outcome: string): void => {
    metrics.upstreamAttempts.inc({ vendor, outcome });
  };
  return { ...metrics, breakerState, countAttempt };
}
