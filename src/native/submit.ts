/**
 * Jobs in a vendor's own form. The intent and its money are durable before the vendor is asked; its answer passes as
 * it is; from then on the job is a task like every other, which ends, is charged and notifies by itself. A client
 * that leaves changes nothing: the job runs on.
 */
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { callRecord } from "../billing/calls/call-record.ts";
import { nativeWaitMs, replyBytesMax } from "../config/limits.ts";
import { neverCancelled } from "../core/cancel-signal.ts";
import { ErrorCode, GatewayError, internalError } from "../core/errors.ts";
import { newId } from "../core/uuid.ts";
import { invalid } from "../dialect/body-members.ts";
import { HttpFailure, isUnsent } from "../http/failure.ts";
import { readPublicUrl } from "../http/public-url.ts";
import { admitModel } from "../inference/pipeline/admit.ts";
import { Call } from "../inference/pipeline/call.ts";
import { reportCall } from "../inference/pipeline/settle.ts";
import { failureError } from "../inference/upstream-refusal.ts";
import type { WholeTask } from "../task/task-row.ts";
import type { NativeSubmitRoute } from "../vendor/native.ts";
import { atLeast, secondsLeast } from "../vendor/task-params.ts";
import type { VendorReply } from "../vendor/vendor.ts";
import type { NativeAsk, NativeContext } from "./context.ts";
import { saidOf } from "./following.ts";
import { checkModel, checkedModel, type NamedModel, type NativeModel } from "./models.ts";
import { judge } from "./refusal.ts";
import { parseObject } from "./reply-stream.ts";
import { customerBody, customerHeaders, vendorRequest } from "./send.ts";
import { checkReferences, referencesOf, claimObjects, insertJob, nameJob } from "./store.ts";

type Ask = NativeAsk<NativeSubmitRoute>;

/** Submits a job. A failure before the head is thrown. */
export async function submit(ask: Ask, context: NativeContext): Promise<void> {
  const { task, found } = await begin(ask, context);
  const { status, headers, body } = await send(ask, context, { task, found });
  const told = customerBody({ at: ask.at, accountId: ask.caller.accountId }, body, context);
  const shown = customerHeaders(ask, context.publicUrl(), { headers, length: told.length });
  ask.sink.whole({ status, headers: shown }, told);
}

type Found = NativeModel & { readonly named: NamedModel };

interface Begun {
  readonly task: WholeTask;
  readonly found: Found;
}

/** What is refused here has a record among the calls, and no task. */
async function begin(ask: Ask, context: NativeContext): Promise<Begun> {
  const { at, route, request, caller, requestId } = ask;
  const path = `${at.prefix}${ask.path}`.slice(0, 256);
  let model = "";
  try {
    request.needBody();
    const found = checkedModel(request, route.model, {
      find: (name) => context.findModel(at.vendor.name, name),
      authorize: (key) => admitModel(context.catalogue, caller, (model = key)),
    });
    checkModel(found.model, route.types);
    await checkReferences(ask, context);
    const callback = readCallback(ask, context.allowHosts);
    const { timeouts, maxInFlight: vendorMax } = at.config;
    const units = route.units(request, found.model);
    const { minSeconds } = found.model;
    const asked = {
      model: found.model,
      route: found.route,
      units: atLeast(units, minSeconds ?? secondsLeast),
      most: atLeast(units, minSeconds ?? route.secondsUsual ?? secondsLeast),
      path,
      fingerprint: request.fingerprint,
      callbackUrl: callback.url,
      runMs: route.task.keptMs,
      waitMs: timeouts.connectMs + Math.max(timeouts.firstByteMs, nativeWaitMs) + timeouts.idleMs,
      vendorMax,
    };
    const task = await context.outside.begin(asked, { caller, requestId }, (open, { id }) =>
      insertJob(open, {
        task_id: id,
        account_id: caller.accountId,
        vendor: at.config.name,
        word: route.task.word,
        callback_id: callback.id,
        wants_progress: callback.wantsProgress,
      }),
    );
    return { task, found };
  } catch (error) {
    const told = error instanceof GatewayError ? error : internalError(error);
    recordRefused(ask, context, { path, model, told });
    throw told;
  }
}

function recordRefused(
  { caller, requestId }: Ask,
  context: NativeContext,
  {
    path,
    model,
    told,
  }: { readonly path: string; readonly model: string; readonly told: GatewayError },
): void {
  const { accountId, keyId, discountBp = 0 } = caller;
  const call = new Call({ id: newId(), requestId, accountId, keyId, discountBp, path });
  call.model = model;
  call.end(CallEnding.REFUSED, told);
  context.ledger.record(callRecord(call));
  reportCall(call, context);
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Asks the vendor, once. */
async function send(ask: Ask, context: NativeContext, { task, found }: Begun): Promise<Answer> {
  const change = { named: found.named, vendorModel: found.route.model };
  const sent = vendorRequest(ask, context.publicUrl(), change);
  const { transport } = ask.at;
  // Its client's leaving is no reason to leave the vendor: the job would run, and nobody would know.
  try {
    const reply = await transport.send({ ...sent, isPatient: true, signal: neverCancelled });
    const isOk = reply.status >= 200 && reply.status < 300;
    return await (isOk ? accepted : refused)(ask, context, { task, reply });
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    // The vendor has answered, and it could not be written down: whoever works on tasks will find out.
    if (!(error instanceof HttpFailure)) throw unknown(error);
    if (!isUnsent(error)) throw await lost(context, task, error);
    const told = failureError(error.kind, error);
    await context.outside.refuse(task, told);
    throw told;
  }
}

interface Replied {
  readonly task: WholeTask;
  readonly reply: VendorReply;
}

async function accepted(
  { at, route }: Ask,
  context: NativeContext,
  { task, reply }: Replied,
): Promise<Answer> {
  const { status, headers } = reply;
  const body = await reply.body.whole(replyBytesMax);
  const json = parseObject(body.toString("utf8"));
  const vendorId = json && route.task.idOf(json);
  if (vendorId === undefined) throw await lost(context, task, `status ${status} without an id`);
  const owner = { vendor: at.config.name, accountId: task.account_id };
  await context.outside.accept(task, vendorId, async (open) => {
    await claimObjects(open, owner, [`${route.task.word}/${vendorId}`]);
    await nameJob(open, task.id, { vendorId, ...saidOf(body, route.task) });
  });
  context.metrics.taskSubmits.inc({ vendor: at.config.name, outcome: "accepted" });
  return { status, headers, body };
}

/** Statuses that leave open whether the job runs. */
const openStatuses = new Set([500, 502, 504]);

async function refused(
  ask: Ask,
  context: NativeContext,
  { task, reply }: Replied,
): Promise<Answer> {
  const { status, headers } = reply;
  const isModels = referencesOf(ask).length === 0;
  const { refusal, body } = await judge(reply, ask.at, { ...context, isModels });
  if (openStatuses.has(status)) throw await lost(context, task, `status ${status}`);
  await context.outside.refuse(task, refusal.error);
  context.metrics.taskSubmits.inc({ vendor: ask.at.config.name, outcome: "refused" });
  if (!refusal.pass) throw refusal.error;
  return { status, headers, body };
}

/** R-ERR-5: an SDK that asks again would make a second job. */
async function lost(
  { outside, metrics, log }: NativeContext,
  task: WholeTask,
  cause: unknown,
): Promise<GatewayError> {
  const { id: taskId, vendor } = task;
  metrics.taskSubmits.inc({ vendor, outcome: "unknown" });
  log.warn({ taskId, vendor, err: cause }, "a vendor did not answer a submit");
  await outside.lose(task);
  return unknown(cause);
}

function unknown(cause: unknown): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_SUBMIT_UNKNOWN,
    "The vendor did not say whether it has the job: it may run, so do not submit it again at once; nothing was charged",
    { cause },
  );
}

/* Where a job's news go: the vendor never learns of it, for it would sign with the operator's own secret. Pure. */

/** What is said of a callback. */
interface Callback {
  readonly url: string | null;
  /** What its receiver knows the job by; null: nothing was said. */
  readonly id: string | null;
  readonly wantsProgress: boolean;
}

/** The longest callback id in characters. */
const idCharsMax = 255;

/** Reads the vendor's own field, else the header. @throws GatewayError INVALID_REQUEST */
function readCallback(
  { at, request }: Pick<NativeAsk, "at" | "request">,
  allowHosts: readonly string[],
): Callback {
  const said = at.api.callback?.read(request) ?? {};
  const written = said.url ?? request.headers["x-callback-url"] ?? "";
  const id = request.headers["x-callback-id"]?.trim() || null;
  const { wantsProgress = true } = said;
  if (id !== null && id.length > idCharsMax) {
    throw invalid(`x-callback-id must not be longer than ${idCharsMax} characters`);
  }
  if (written === "") return { url: null, id, wantsProgress };
  const read = readPublicUrl(written, allowHosts);
  if ("url" in read) return { url: read.url.href, id, wantsProgress };
  throw invalid(`The callback ${read.problem}`);
}
