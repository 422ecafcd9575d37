/** What customers ask of their jobs: how they stand, that they stop, which there are. */
import { HttpFailure } from "../http/failure.ts";
import { failureError } from "../inference/upstream-refusal.ts";
import type {
  NativeCancelRoute,
  NativeListRoute,
  NativePassRoute,
  NativePollRoute,
} from "../vendor/native.ts";
import { VendorTrouble } from "../vendor/task.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { NativeAsk, NativeContext } from "./context.ts";
import { checkOwned, noSuchObject, findJob, listJobs, type NativeJob } from "./store.ts";
import { pass } from "./pass.ts";
import { parseObject } from "./reply-stream.ts";
import { customerBody } from "./send.ts";
import { isUuid } from "../core/uuid.ts";

/** How a job stands: from what is kept. What is no job, but the caller's own, passes. */
export async function poll(ask: NativeAsk<NativePollRoute>, context: NativeContext): Promise<void> {
  const { at, route, request } = ask;
  const id = route.id(request);
  const job = await ownJob(ask, context, id);
  if (job === undefined) {
    await checkOwned(ask, context, [`${route.task.word}/${id}`]);
    await pass({ ...ask, route: jobPass(ask, undefined, undefined) }, context);
  } else if (route.livePath === undefined) {
    const { body } = await looked(context.following.look(at, job, route.task));
    const json = parseObject(body.toString("utf8"));
    await answer(ask, context, { body, status: json && route.task.httpStatusOf?.(json) });
  } else {
    await live(ask, context, job);
  }
}

/** What is not kept of a job: the vendor has it. */
async function live(
  ask: NativeAsk<NativePollRoute>,
  context: NativeContext,
  job: NativeJob,
): Promise<void> {
  const { at, route } = ask;
  const { pending, task } = route;
  const isOver =
    pending === undefined || (await looked(context.following.look(at, job, task))).isOver;
  if (isOver) {
    await pass({ ...ask, route: jobPass(ask, job, route.livePath) }, context);
  } else {
    const { status, json } = pending;
    await answer(ask, context, { body: Buffer.from(JSON.stringify(json)), status });
  }
}

/** The same about a job, where its vendor has it: clients may name its model as they know it. */
function jobPass(
  { at, route }: NativeAsk,
  job: NativeJob | undefined,
  pathOf: ((id: string, model: string) => string) | undefined,
): NativePassRoute {
  const [{ name: base }] = at.transport.bases;
  const { method, path } = route;
  const passing: NativePassRoute = {
    kind: "pass",
    method,
    path,
    isJobs: true,
    ...(route.target && { target: route.target }),
  };
  if (!job?.vendor_model || pathOf === undefined) return passing;
  const place = pathOf(job.vendor_id ?? "", job.vendor_model);
  return { ...passing, target: () => ({ base, path: place }) };
}

/** The vendor's refusal to stop it passes as it is. */
export async function cancel(
  ask: NativeAsk<NativeCancelRoute>,
  context: NativeContext,
): Promise<void> {
  const { route, request } = ask;
  const id = route.id(request);
  const job = await ownJob(ask, context, id);
  if (job === undefined) await checkOwned(ask, context, [`${route.task.word}/${id}`]);
  const onWhole = async (body: Buffer): Promise<void> => {
    if (job !== undefined) await context.following.take(job, route.task, body);
  };
  const passing = jobPass(ask, job, route.task.cancel?.path);
  await pass({ ...ask, route: passing }, context, onWhole);
}

/** The caller's own, from what is kept: the vendor's list has those of all customers. */
export async function list(ask: NativeAsk<NativeListRoute>, context: NativeContext): Promise<void> {
  const { at, route, request, caller } = ask;
  const { accountId } = caller;
  const cursor = request.query.get(route.cursor) ?? "";
  if (cursor !== "" && !isUuid(cursor)) {
    const text = `${route.cursor}: take it from the page before`;
    throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: route.cursor });
  }
  const jobs = await listJobs(context.pool, {
    accountId,
    vendor: at.config.name,
    word: route.task.word,
    after: cursor === "" ? undefined : cursor,
    limit: route.pageSize + 1,
  });
  const page = jobs.slice(0, route.pageSize);
  const last = jobs.length > page.length ? page.at(-1)?.task_id : undefined;
  const [{ url }] = at.transport.bases;
  const next = last && `${url}${ask.path}?${route.cursor}=${last}`;
  const texts = page.flatMap(({ body }) => (body === null ? [] : [body.toString("utf8")]));
  await answer(ask, context, { body: Buffer.from(route.body(texts, next)) });
}

/** `undefined`: it is no job. @throws GatewayError NOT_FOUND where it is somebody else's */
async function ownJob(
  { at, caller }: NativeAsk,
  { pool }: NativeContext,
  id: string,
): Promise<NativeJob | undefined> {
  const job = await findJob(pool, at.config.name, id);
  if (job !== undefined && job.account_id !== caller.accountId) throw noSuchObject();
  return job;
}

async function looked<Seen>(look: Promise<Seen>): Promise<Seen> {
  try {
    return await look;
  } catch (error) {
    if (error instanceof HttpFailure) throw failureError(error.kind, error);
    if (!(error instanceof VendorTrouble)) throw error;
    const text = "The vendor does not say how the job stands; ask again";
    throw new GatewayError(ErrorCode.UPSTREAM_ERROR, text, { cause: error });
  }
}

async function answer(
  { at, caller, sink }: NativeAsk,
  context: NativeContext,
  { body, status = 200 }: { readonly body: Buffer; readonly status?: number | undefined },
): Promise<void> {
  const told = customerBody({ at, accountId: caller.accountId }, body, context);
  const headers = {
    "content-type": "application/json",
    "content-length": String(told.length),
    // It changes, and it is one customer's.
    "cache-control": "private, no-store",
  };
  sink.whole({ status, headers }, told);
}
