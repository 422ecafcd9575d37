/**
 * Customers' requests about their jobs (poll, cancel, list), and about the models that they may
 * use.
 */
import type {
  NativeCancelRoute,
  NativeListRoute,
  NativeModelsRoute,
  NativePassRoute,
  NativePollRoute,
} from "../provider/native.ts";
import { VendorReplyError } from "../provider/task.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { NativeContext } from "./context.ts";
import { type NativeExchange, withCredential } from "./mount.ts";
import { listNative } from "./models.ts";
import { checkOwned, noSuchObject, findJob, listJobs, type NativeJob } from "./store.ts";
import { pass } from "./pass.ts";
import { parseObject } from "./reply-stream.ts";
import { customerBody } from "./send.ts";
import { isUuid } from "../core/uuid.ts";

/**
 * Answers a poll from the tracked report. An id that is no job, but an object of the caller, passes
 * to the vendor.
 */
export async function poll(
  exchange: NativeExchange<NativePollRoute>,
  context: NativeContext,
): Promise<void> {
  const { mount, route, request } = exchange;
  const id = route.id(request);
  const job = await ownJob(exchange, context, id);
  if (job === undefined) {
    const name = `${route.task.collection}/${id}`;
    const { credential } = await checkOwned(exchange, context, [name]);
    const own = withCredential(mount, credential);
    const passing = jobPass(exchange, undefined, undefined);
    await pass({ ...exchange, mount: own, route: passing }, context);
  } else if (route.livePath === undefined) {
    const { body } = await mapTrackerFailure(context.jobTracker.refresh(mount, job, route.task));
    const json = parseObject(body.toString("utf8"));
    await answer(exchange, context, { body, status: json && route.task.httpStatusOf?.(json) });
  } else {
    await passLive(exchange, context, job);
  }
}

/** Passes a request to the vendor, for parts of a job that are not kept. */
async function passLive(
  exchange: NativeExchange<NativePollRoute>,
  context: NativeContext,
  job: NativeJob,
): Promise<void> {
  const { mount, route } = exchange;
  const { pending, task } = route;
  // A client requests a result because it was notified of the end, which may be more recent than
  // the stored report.
  const isOver =
    pending === undefined ||
    (await mapTrackerFailure(context.jobTracker.refreshNow(mount, job, task))).isOver;
  if (isOver) {
    const own = withCredential(mount, job.credential);
    await pass({ ...exchange, mount: own, route: jobPass(exchange, job, route.livePath) }, context);
  } else {
    const { status, json } = pending;
    await answer(exchange, context, { body: Buffer.from(JSON.stringify(json)), status });
  }
}

/**
 * The pass route to a job's path at the vendor: clients may use the platform's name of the model.
 */
function jobPass(
  { mount, route }: NativeExchange,
  job: NativeJob | undefined,
  pathOf: ((id: string, model: string) => string) | undefined,
): NativePassRoute {
  const [{ name: base }] = mount.transport.bases;
  const { method, path } = route;
  const passing: NativePassRoute = {
    kind: "pass",
    method,
    path,
    isJobFailure: true,
    ...(route.target && { target: route.target }),
  };
  if (!job?.vendor_model || pathOf === undefined) return passing;
  const place = pathOf(job.vendor_id ?? "", job.vendor_model);
  return { ...passing, target: () => ({ base, path: place }) };
}

/** Cancels a job. The vendor's refusal passes unchanged. */
export async function cancel(
  exchange: NativeExchange<NativeCancelRoute>,
  context: NativeContext,
): Promise<void> {
  const { mount, route, request } = exchange;
  const id = route.id(request);
  const job = await ownJob(exchange, context, id);
  const name = `${route.task.collection}/${id}`;
  const credential = job?.credential ?? (await checkOwned(exchange, context, [name])).credential;
  const onWhole = async (body: Buffer): Promise<void> => {
    if (job !== undefined) await context.jobTracker.recordAnswer(job, route.task, body);
  };
  const passing = jobPass(exchange, job, route.task.cancel?.path);
  const own = withCredential(mount, credential);
  await pass({ ...exchange, mount: own, route: passing }, context, onWhole);
}

/**
 * Lists the caller's jobs from the stored reports: the vendor's list contains the jobs of all
 * customers.
 */
export async function list(
  exchange: NativeExchange<NativeListRoute>,
  context: NativeContext,
): Promise<void> {
  const { mount, route, request, caller } = exchange;
  const { accountId } = caller;
  const cursor = readCursor(request.query.get(route.cursor) ?? "", route.cursor);
  const jobs = await listJobs(context.pool, {
    accountId,
    vendor: mount.config.name,
    word: route.task.collection,
    ...cursor,
    limit: route.pageSize + 1,
  });
  const isBack = cursor.before !== undefined;
  const isMore = jobs.length > route.pageSize;
  const page = isBack ? jobs.slice(-route.pageSize) : jobs.slice(0, route.pageSize);
  const [{ url }] = mount.transport.bases;
  const at = (text: string | undefined): string | undefined =>
    text && `${url}${exchange.path}?${route.cursor}=${text}`;
  const newest = page.at(0)?.task_id;
  const oldest = page.at(-1)?.task_id;
  const hasNewer = isBack ? isMore : cursor.after !== undefined;
  const pages = {
    previous: at(hasNewer && newest !== undefined ? `${backwards}${newest}` : undefined),
    next: at(isBack || isMore ? oldest : undefined),
  };
  const texts = page.map(({ body, ...job }) => {
    const id = job.vendor_id ?? "";
    const model = job.vendor_model ?? "";
    const brief = () =>
      JSON.stringify(route.brief({ id, model, status: job.status, baseUrl: url }));
    return body?.toString("utf8") ?? brief();
  });
  await answer(exchange, context, { body: Buffer.from(route.body(texts, pages)) });
}

/** Begins the cursor of a page of newer jobs. */
const backwards = "p-";

/** Reads a cursor: jobs older than one, or newer than one. @throws GatewayError INVALID_REQUEST */
function readCursor(
  text: string,
  param: string,
): { readonly after?: string; readonly before?: string } {
  if (text === "") return {};
  const isBack = text.startsWith(backwards);
  const id = isBack ? text.slice(backwards.length) : text;
  if (isUuid(id)) return isBack ? { before: id } : { after: id };
  const message = `${param} is invalid: use the value from the previous page`;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}

/** Lists the models of this vendor that the caller may use (R-AUTH-5). */
export async function listModels(
  exchange: NativeExchange<NativeModelsRoute>,
  context: NativeContext,
): Promise<void> {
  const { mount, route, caller } = exchange;
  const allowed = context.catalogue.list(caller);
  const models = listNative(context.findModel, mount.config.name, allowed);
  await answer(exchange, context, { body: Buffer.from(route.body(models)) });
}

/**
 * The caller's job; undefined if the id is no job.
 *
 * @throws GatewayError NOT_FOUND if it belongs to another account
 */
async function ownJob(
  { mount, caller }: NativeExchange,
  { pool }: NativeContext,
  id: string,
): Promise<NativeJob | undefined> {
  const job = await findJob(pool, mount.config.name, id);
  if (job !== undefined && job.account_id !== caller.accountId) throw noSuchObject();
  return job;
}

async function mapTrackerFailure<Seen>(look: Promise<Seen>): Promise<Seen> {
  try {
    return await look;
  } catch (error) {
    if (!(error instanceof VendorReplyError)) throw error;
    const text = "The vendor does not report the state of the job; try again";
    throw new GatewayError(ErrorCode.UPSTREAM_ERROR, text, { cause: error });
  }
}

/** Answers with JSON of the gateway. */
export async function answer(
  { mount, caller, sink }: NativeExchange,
  context: NativeContext,
  { body, status = 200 }: { readonly body: Buffer; readonly status?: number | undefined },
): Promise<void> {
  const told = customerBody({ mount, owner: caller }, body, context);
  const headers = {
    "content-type": "application/json",
    "content-length": String(told.length),
    // It changes, and it belongs to one customer.
    "cache-control": "private, no-store",
  };
  sink.whole({ status, headers }, told);
}
