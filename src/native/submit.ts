/**
 * Submits native jobs. The intent and its hold are durable before the vendor is called; the
 * vendor's reply is forwarded unchanged. From then on the job is a task: it ends, is charged and
 * sends webhooks without its client. After a disconnect the job continues.
 */
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { callRecord } from "../billing/calls/call-record.ts";
import { nativeWaitMs, replyBytesMax } from "../core/limits.ts";
import { neverCancelled } from "../core/cancel-signal.ts";
import { ErrorCode, GatewayError, internalError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import { HttpFailure, isUnsent } from "../http/failure.ts";
import { readPublicUrl } from "../http/public-url.ts";
import { Call } from "../calls/pipeline/call.ts";
import { reportCall } from "../calls/pipeline/call-report.ts";
import {
  attemptFailureOf,
  attemptFailureOfKind,
  failureError,
  retryAfterMs,
} from "../routing/upstream-refusal.ts";
import type { WholeTask } from "../task/task-row.ts";
import type { NativeSubmitRoute } from "../provider/native.ts";
import { atLeast, minChargedSeconds, withCharacters } from "../provider/task-params.ts";
import type { VendorReply } from "../provider/reply.ts";
import type { NativeContext } from "./context.ts";
import { callPath, type NativeExchange, withCredential } from "./mount.ts";
import { savedAnswerOf } from "./job-tracker.ts";
import {
  checkModel,
  checkedModel,
  type NamedModel,
  type NativeModel,
  spokenTexts,
} from "./models.ts";
import { classifyRefusal } from "./refusal.ts";
import { parseObject } from "./reply-stream.ts";
import { customerBody, customerHeaders, vendorRequest } from "./send.ts";
import { checkReferences, referencesOf, claimObjects, insertJob, acceptJob } from "./store.ts";

type SubmitExchange = NativeExchange<NativeSubmitRoute>;

/** Submits a job. A failure before the head is thrown. */
export async function submit(given: SubmitExchange, context: NativeContext): Promise<void> {
  const { task, found, credential } = await begin(given, context);
  const exchange = { ...given, mount: withCredential(given.mount, credential) };
  const { status, headers, body } = await send(exchange, context, { task, found });
  const told = customerBody({ mount: exchange.mount, owner: exchange.caller }, body, context);
  const shown = customerHeaders(exchange, context.publicUrl(), { headers, length: told.length });
  exchange.sink.whole({ status, headers: shown }, told);
}

type Found = NativeModel & { readonly named: NamedModel };

interface Begun {
  readonly task: WholeTask;
  readonly found: Found;
  /** The name of the credential; empty for the vendor's only or first one. */
  readonly credential: string;
}

/** Checks the request and begins its task. A refusal here is recorded as a call, without a task. */
async function begin(exchange: SubmitExchange, context: NativeContext): Promise<Begun> {
  const { mount, route, request, caller, requestId } = exchange;
  const path = callPath(exchange);
  let model = "";
  try {
    request.needBody();
    const version = await findVersion(exchange, context);
    const found = checkedModel(request, route.model, {
      find: (name) => version ?? context.findModel(mount.vendor.name, name),
      authorize: (key) => context.admission.model(caller, (model = key)),
    });
    checkModel(found.model, route.types);
    const stored = await checkReferences(exchange, context);
    const callback = readCallback(exchange, context.allowHosts);
    const { timeouts, maxInFlight: vendorMax } = mount.config;
    const units = withCharacters(route.units(request, found.model), found.model, () =>
      spokenTexts(request),
    );
    const { minSeconds } = found.model;
    const asked = {
      model: found.model,
      route: found.route,
      units: atLeast(units, minSeconds ?? minChargedSeconds),
      maxUnits: atLeast(units, minSeconds ?? route.assumedSeconds ?? minChargedSeconds),
      path,
      fingerprint: request.fingerprint,
      callbackUrl: callback.url,
      runMs: route.task.retentionMs,
      waitMs: timeouts.connectMs + Math.max(timeouts.firstByteMs, nativeWaitMs) + timeouts.idleMs,
      vendorMax,
    };
    const task = await context.external.begin(asked, { caller, requestId }, (open, { id }) =>
      insertJob(open, {
        task_id: id,
        account_id: caller.accountId,
        vendor: mount.config.name,
        word: route.task.collection,
        callback_id: callback.id,
        wants_progress: callback.wantsProgress,
      }),
    );
    const credential =
      stored?.credential ?? (await context.routing.chooseCredential(found.route, none)) ?? "";
    return { task, found, credential };
  } catch (error) {
    const told = error instanceof GatewayError ? error : internalError(error);
    recordRefused(exchange, context, { path, model, told });
    throw told;
  }
}

/** The model with the version in the request; undefined if it names a configured model, or none. */
async function findVersion(
  { mount, route, request, caller, signal }: SubmitExchange,
  { catalogue, versions }: NativeContext,
): Promise<NativeModel | undefined> {
  if (route.model.in !== "body" || route.model.version === undefined) return undefined;
  const [name] = route.model.members.map((member) => request.member(member));
  if (typeof name !== "string") return undefined;
  const models = catalogue.list(caller);
  return versions.find({ mount, name, at: route.model, models, signal });
}

const none: ReadonlySet<string> = new Set();

function recordRefused(
  { caller, requestId }: SubmitExchange,
  context: NativeContext,
  {
    path,
    model,
    told,
  }: { readonly path: string; readonly model: string; readonly told: GatewayError },
): void {
  const { accountId, keyId, discountBp = 0 } = caller;
  const { clock } = context;
  const id = clock.newId();
  const startMs = clock.now();
  const call = new Call({ id, startMs, requestId, accountId, keyId, discountBp, path });
  call.model = model;
  call.end(CallEnding.REFUSED, told);
  if (!context.refusals.passes(call)) return;
  context.ledger.record(callRecord(call));
  reportCall(call, context);
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Submits to the vendor, once. */
async function send(
  exchange: SubmitExchange,
  context: NativeContext,
  { task, found }: Pick<Begun, "task" | "found">,
): Promise<Answer> {
  const place = { ...found.route, credential: exchange.mount.credential };
  const startMs = context.routing.clock();
  const change = { named: found.named, vendorModel: found.version ?? found.route.model };
  const sent = vendorRequest(exchange, context.publicUrl(), change);
  const { transport } = exchange.mount;
  // Not cancelled when the client disconnects: the job would run without a record of its id.
  try {
    const reply = await transport.send({ ...sent, isPatient: true, signal: neverCancelled });
    const isOk = reply.status >= 200 && reply.status < 300;
    if (isOk) context.routing.accepted(place, startMs);
    return await (isOk ? accepted : refused)(exchange, context, { task, reply });
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    // The vendor has answered, but the database did not: workers recover the outcome.
    if (!(error instanceof HttpFailure)) throw unknown(error);
    const failure = attemptFailureOfKind(error.kind);
    context.routing.failed(place, failure, { what: "native: no answer to a submit" });
    if (!isUnsent(error)) throw await lost(context, task, error);
    const told = failureError(error.kind, error);
    await context.external.refuse(task, told);
    throw told;
  }
}

interface Replied {
  readonly task: WholeTask;
  readonly reply: VendorReply;
}

async function accepted(
  { mount, route }: SubmitExchange,
  context: NativeContext,
  { task, reply }: Replied,
): Promise<Answer> {
  const { status, headers } = reply;
  const body = await reply.body.whole(replyBytesMax);
  const json = parseObject(body.toString("utf8"));
  const vendorId = json && route.task.idOf(json);
  if (vendorId === undefined) throw await lost(context, task, `status ${status} without an id`);
  const { credential } = mount;
  const owner = { vendor: mount.config.name, accountId: task.account_id, credential };
  await context.external.accept(task, vendorId, async (open) => {
    await claimObjects(open, owner, [`${route.task.collection}/${vendorId}`]);
    await acceptJob(open, task.id, { vendorId, ...savedAnswerOf(body, route.task) });
  });
  context.metrics.taskSubmits.inc({ vendor: mount.config.name, outcome: "accepted" });
  return { status, headers, body };
}

/** Statuses that leave open whether the job runs. */
const openStatuses = new Set([500, 502, 504]);

async function refused(
  exchange: SubmitExchange,
  context: NativeContext,
  { task, reply }: Replied,
): Promise<Answer> {
  const { status, headers } = reply;
  const isModels = referencesOf(exchange).length === 0;
  const { refusal, body } = await classifyRefusal(reply, exchange.mount, { ...context, isModels });
  if (refusal.canRetry) {
    const { vendor, vendor_model: model } = task;
    const what = `native: status ${status}`;
    const place = { vendor, model, credential: exchange.mount.credential };
    const failed = { what, retryAfterMs: retryAfterMs(headers) };
    context.routing.failed(place, attemptFailureOf(status, refusal), failed);
  }
  if (openStatuses.has(status)) throw await lost(context, task, `status ${status}`);
  await context.external.refuse(task, refusal.error);
  context.metrics.taskSubmits.inc({ vendor: exchange.mount.config.name, outcome: "refused" });
  if (!refusal.isRelayed) throw refusal.error;
  return { status, headers, body };
}

/**
 * The outcome is unknown. The error says not to retry: an SDK that retries would create a second
 * job (R-ERR-5).
 */
async function lost(
  { external, metrics, log }: NativeContext,
  task: WholeTask,
  cause: unknown,
): Promise<GatewayError> {
  const { id: taskId, vendor } = task;
  metrics.taskSubmits.inc({ vendor, outcome: "unknown" });
  log.warn({ taskId, vendor, err: cause }, "a vendor did not answer a submit");
  await external.lose(task);
  return unknown(cause);
}

function unknown(cause: unknown): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_SUBMIT_UNKNOWN,
    "The vendor did not confirm the job: it may be running, so do not submit it again at once; nothing was charged",
    { cause },
  );
}

/**
 * The callback of a job. It is not sent to the vendor, which would sign with the operator's secret.
 */
interface Callback {
  readonly url: string | null;
  /** The receiver's id of the job; null if none was sent. */
  readonly id: string | null;
  readonly wantsProgress: boolean;
}

/** The longest callback id in characters. */
const idCharsMax = 255;

/**
 * Reads the callback from the vendor's field, otherwise from headers.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function readCallback(
  { mount, request }: Pick<NativeExchange, "mount" | "request">,
  allowHosts: readonly string[],
): Callback {
  const said = mount.api.callback?.read(request) ?? {};
  const written = said.url ?? request.headers["x-callback-url"] ?? "";
  const id = request.headers["x-callback-id"]?.trim() || null;
  const { wantsProgress = true } = said;
  if (id !== null && id.length > idCharsMax) {
    throw invalid(undefined, `x-callback-id must not be longer than ${idCharsMax} characters`);
  }
  if (written === "") return { url: null, id, wantsProgress };
  const read = readPublicUrl(written, allowHosts);
  if ("url" in read) return { url: read.url.href, id, wantsProgress };
  throw invalid(undefined, `The callback ${read.problem}`);
}
