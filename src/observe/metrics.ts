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

/** Creates the metrics in a separate registry. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
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
    /**
     * Adds a gauge that is read at each scrape.
     *
     * @param aggregator combines the values of several workers: `sum` for values of each process,
     * `max` for a value that all report alike. The sum by default
     */
    gauge(name: string, help: string, read: () => number, aggregator: "sum" | "max" = "sum"): void {
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
    authFailures: new Counter({
      registers: [registry],
      name: "uas_auth_failures_total",
      help: "Refused credentials by true reason: missing, unknown, disabled, deleted, expired.",
      labelNames: ["reason"],
    }),
    limitRefusals: new Counter({
      registers: [registry],
      name: "uas_limit_refusals_total",
      help: "Calls refused by a limit of a key, an account, a model or the process.",
      labelNames: ["limit"],
    }),
    requests: new Counter({
      registers: [registry],
      name: "uas_requests_total",
      help: "Answered REST requests by route of the contract and HTTP status.",
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
      help: "Duration of inference calls, from the received request to their end.",
      labelNames: ["model", "vendor", "ending"],
      buckets: durationBuckets,
    }),
    firstByte: new Histogram({
      registers: [registry],
      name: "uas_first_byte_seconds",
      help: "Time of inference calls from the received request to the first byte of content.",
      labelNames: ["model", "vendor"],
      buckets: durationBuckets,
    }),
    overhead: new Histogram({
      registers: [registry],
      name: "uas_gateway_overhead_seconds",
      help: "Time added by the gateway, before the upstream request and before the first byte is forwarded.",
      buckets: overheadBuckets,
    }),
    tokens: new Counter({
      registers: [registry],
      name: "uas_tokens_total",
      help: "Tokens of charged calls.",
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
      help: "Vendors' charges for calls and tasks in USD, if the configuration has their costs.",
      labelNames: ["model", "vendor"],
    }),
    platformLoss: new Counter({
      registers: [registry],
      name: "uas_platform_loss_nanos_total",
      help: "Losses of the platform by calls and tasks in nano-USD, by reason.",
      labelNames: ["reason"],
    }),
    lowBalances: new Counter({
      registers: [registry],
      name: "uas_billing_low_balance_total",
      help: "Number of times an account fell below its low-balance threshold.",
    }),
    alertEmails: new Counter({
      registers: [registry],
      name: "uas_alert_emails_total",
      help: "Attempts to send an alert by e-mail, by outcome.",
      labelNames: ["outcome"],
    }),
    refusedForBalance: new Counter({
      registers: [registry],
      name: "uas_billing_rejected_total",
      help: "Calls refused with insufficient_balance.",
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
    taskSubmits: new Counter({
      registers: [registry],
      name: "uas_task_submits_total",
      help: "Submits of tasks to vendors by outcome: accepted, done, refused, later, unsent, unknown.",
      labelNames: ["vendor", "outcome"],
    }),
    tasksEnded: new Counter({
      registers: [registry],
      name: "uas_tasks_ended_total",
      help: "Tasks that this process ended, by status and error code. Compare upstream_submit_unknown with the vendor's invoice.",
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
      help: "Workers that died and were restarted.",
    }),
  };
}

function signInMetrics(registry: Registry) {
  return {
    codesSent: new Counter({
      registers: [registry],
      name: "uas_sms_sends_total",
      help: "One-time codes by delivery result: sent, failed, limited, capped. capped: a limit that affects all users.",
      labelNames: ["outcome"],
    }),
    codeChecks: new Counter({
      registers: [registry],
      name: "uas_code_checks_total",
      help: "Checks of one-time codes by outcome: right, wrong, expired, blocked.",
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
      help: "Vendor replies that need the operator's attention: credential, money, model, limit_ignored, usage_implausible, usage_unknown.",
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
