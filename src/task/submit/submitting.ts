/**
 * Submits tasks to vendors, never twice the same one (R-TSK-7), and recovers submits without an
 * answer.
 */
import { confirmVendorTaskId } from "../work/vendor-notifications.ts";
import type { RouteConfig } from "../../config/config.ts";
import { taskConnectsMax } from "../../core/limits.ts";
import { limitTime } from "../../core/async.ts";
import { ErrorCode } from "../../core/errors.ts";
import { HttpFailure, isUnsent } from "../../http/failure.ts";
import { TaskRefused, TaskStopped, type Submitted, type TaskOutcome } from "../../provider/task.ts";
import { timedOut, faultCode } from "../failures.ts";
import type { TaskRow, WholeTask } from "../task-row.ts";
import type { Stopped, TaskWork, Work } from "../work/task-work.ts";
import type { TransitionColumns } from "../transition.ts";
import { TaskPlaces } from "./task-places.ts";
import type { VendorHealth } from "../work/vendor-health.ts";
import type { WorkerVendor } from "../work/worker-options.ts";

/** Copies a result and completes its task. */
export type Finalize = (work: Work, outcome: TaskOutcome) => Promise<void>;

const lostMessage =
  "the vendor did not answer the submit, and a second submit could create the task twice; nothing was charged: submit a new task if you still need the result";

/** The steps of `submitting` and `submit_unknown`. */
export class SubmitSteps {
  readonly #work: TaskWork;
  readonly #finalize: Finalize;
  readonly #vendorHealth: VendorHealth;
  readonly #places: TaskPlaces;

  constructor(work: TaskWork, finalize: Finalize, vendorHealth: VendorHealth) {
    this.#work = work;
    this.#finalize = finalize;
    this.#vendorHealth = vendorHealth;
    this.#places = new TaskPlaces(work.options.routing);
  }

  /** Submits a task whose intent is durable. */
  async submit(work: Work): Promise<void> {
    // The client cancelled it while it was queued again.
    if (work.task.cancel_requested) return this.#work.cancel(work);
    const paused = this.#vendorHealth.pauseOf(work.task);
    if (paused !== undefined) return this.#tryNext(work, paused.refused, paused.waitMs);
    const chosen = await this.#places.choose(work.task, work.refusedCredentials);
    if (chosen === undefined) return this.#tryNext(work, busy, 0);
    const set = { credential: chosen };
    // The intent is durable with its credential.
    const isSame = chosen === work.task.credential;
    const placed = isSame ? work.task : await this.#work.transition(work, { set });
    if (placed === undefined) return this.#work.requeueUnsent(work);
    const task = await this.#work.withParams({ ...work, task: placed });
    // Not while this process stops. Not after it paused, because another process may be submitting
    // the task already.
    if (work.lease.isSafe() && !work.signal.aborted) return this.#submit({ ...work, task });
    await this.#work.requeueUnsent(work);
  }

  async #submit(work: Work & { readonly task: WholeTask }): Promise<void> {
    const { task, lastSignal } = work;
    const vendor = this.#work.vendorOf(task);
    if (vendor === undefined)
      return this.#refuse(work, temporaryRefusal(`vendor ${task.vendor} is no longer configured`));
    // A vendor without a cancel request ends a task when its connection closes.
    const endsHere = vendor.tasks.canCancel && vendor.tasks.cancel === undefined;
    const cancelled = endsHere ? work.lease.cancelled : undefined;
    using limit = limitTime(task.left_ms, [lastSignal]);
    using stop = limitTime(task.left_ms, [limit.signal, ...(cancelled ? [cancelled] : [])]);
    const { signal } = stop;
    const startMs = this.#places.startMs();
    let submitted: Submitted;
    try {
      const asking = vendor.tasks.submit({
        attemptToken: task.attempt_token ?? "",
        model: task.vendor_model,
        type: task.type,
        params: task.params,
        signal,
        lastSignal: cancelled && limit.signal,
        ...this.#callback(task),
        onUpdate: () => this.#work.onVendorNotification(task),
      });
      this.#work.failpoint("request.submit");
      submitted = await asking;
    } catch (error) {
      if (cancelled?.aborted) return this.#work.cancel(work, stoppedBy(error));
      if (error instanceof TaskRefused) return this.#refuse(work, error);
      if (error instanceof HttpFailure && isUnsent(error)) return this.#unsent(work, error);
      return this.#lose(work, error, limit.isOverdue());
    }
    this.#work.failpoint("reply.submit");
    this.#reportSubmit(task, "done" in submitted ? "done" : "accepted");
    this.#vendorHealth.onSubmitAnswered(task);
    this.#places.accepted(task, startMs);
    await this.accept(work, submitted);
  }

  /** Recovers a task whose submit got no answer, in this process or in one that died. */
  async recover(work: Work): Promise<void> {
    const { task } = work;
    if (task.state === "submitting") {
      const isBlind = this.#work.vendorOf(task)?.tasks.resubmit === "blind";
      // After an outage of the database, the process that submitted it may be alive and have the
      // answer. It has this time to store the answer.
      const releaseMs = isBlind ? this.#work.timings.settleMs : undefined;
      const lost = await this.#work.transition(work, {
        event: "lose",
        ...(releaseMs !== undefined && { releaseMs }),
      });
      if (lost === undefined || releaseMs !== undefined) return;
      return this.recover({ ...work, task: lost });
    }
    const vendor = this.#work.vendorOf(task);
    switch (vendor?.tasks.resubmit) {
      case "idempotent":
        return this.#resubmit(work);
      case "findable":
        return this.#find(work, vendor);
      case "blind":
        return this.#wait(work, vendor);
      case undefined:
        // The vendor may be configured in another process.
        await this.#work.release(work, this.#work.pause(task.failure_count), {
          failure_count: task.failure_count + 1,
        });
    }
  }

  async #resubmit(work: Work): Promise<void> {
    if (work.task.cancel_requested && work.task.failure_count > 0) return this.#work.cancel(work);
    const again = await this.#work.transition(work, { event: "resubmit" });
    if (again === undefined) return;
    const task = await this.#work.withParams({ ...work, task: again });
    if (work.lease.isSafe()) return this.#submit({ ...work, task });
    await this.#work.release({ ...work, task }, 0);
  }

  async #find(work: Work, { tasks }: WorkerVendor): Promise<void> {
    const { task, signal } = work;
    let found: Submitted | undefined;
    try {
      const asking = tasks.find?.(task.attempt_token ?? "", signal);
      this.#work.failpoint("request.find");
      found = await asking;
    } catch (error) {
      if (signal.aborted) return this.#releaseNow(work);
      const failures = task.failure_count + 1;
      this.#work.warn("a task could not be searched for at its vendor", {
        taskId: task.id,
        failures,
        err: error,
      });
      const pause = this.#work.pause(task.failure_count);
      return void (await this.#work.release(work, pause, { failure_count: failures }));
    }
    this.#work.failpoint("reply.find");
    if (found !== undefined) return this.accept(work, found);
    const leftMs = this.#work.timings.settleMs - (task.age_ms ?? 0);
    if (leftMs > 0) return void (await this.#work.release(work, leftMs));
    if (task.cancel_requested) return this.#work.cancel(work);
    return this.#resubmit(work);
  }

  /**
   * Waits for a vendor's callback, because the vendor cannot be asked whether it has the task. If
   * the vendor sends no callbacks, the task fails.
   */
  async #wait(work: Work, vendor: WorkerVendor): Promise<void> {
    const { task } = work;
    const { unknownMs } = this.#work.timings;
    const { callbackUrl } = this.#work.options;
    const isTold = callbackUrl !== undefined && vendor.tasks.callbacks !== undefined;
    const leftMs = (isTold ? unknownMs : 0) - (task.age_ms ?? 0);
    let set: TransitionColumns = {};
    if (task.reported_vendor_task_id !== null) {
      const resolved = await resolveVendorTaskId(this.#work, work, vendor);
      if ("vendorTaskId" in resolved) return this.accept(work, resolved);
      if (resolved.isOpen && leftMs > 0) {
        const pause = Math.min(leftMs, this.#work.pause(task.failure_count));
        const failures = task.failure_count + 1;
        return void (await this.#work.release(work, pause, { failure_count: failures }));
      }
      set = resolved.isOpen ? { is_late_charge_pending: true } : { reported_vendor_task_id: null };
    }
    if (task.cancel_requested) return this.#work.cancel(work, { set });
    if (leftMs > 0) return void (await this.#work.release(work, leftMs, set));
    this.#work.warn("it is unknown whether a vendor has a task: compare with its invoice", {
      taskId: task.id,
      vendor: task.vendor,
      attemptToken: task.attempt_token,
    });
    const { UPSTREAM_SUBMIT_UNKNOWN: code } = ErrorCode;
    await this.#work.fail(work, { code, message: lostMessage, set });
  }

  /**
   * Continues a task with its vendor's answer, which stays in memory until the database accepts it.
   */
  async accept(work: Work, submitted: Submitted): Promise<void> {
    const { vendorTaskId } = submitted;
    const set = {
      failure_count: 0,
      ...(vendorTaskId !== undefined && { vendor_task_id: vendorTaskId }),
    };
    if ("done" in submitted) {
      const { done } = submitted;
      const task = await this.#work.transitionKept(work, { event: "produce", set });
      if (task === undefined) {
        return this.#work.recordLate(work.task, "done", { vendorTaskId, outcome: done });
      }
      return this.#finalize({ ...work, task }, done);
    }
    const { cancel_requested: isCancelled, reported_vendor_task_id: reported } = work.task;
    const releaseMs = isCancelled || reported !== null ? 0 : this.#work.pollPause(work.task, 0);
    const task = await this.#work.transitionKept(work, { event: "accept", set, releaseMs });
    if (task === undefined) await this.#work.recordLate(work.task, "accepted", { vendorTaskId });
  }

  async #lose(work: Work, error: unknown, isOverdue: boolean): Promise<void> {
    const { task } = work;
    this.#reportSubmit(task, "unknown");
    this.#places.lost(task, error);
    this.#work.warn("a vendor did not answer a submit", {
      taskId: task.id,
      vendor: task.vendor,
      err: error,
    });
    const { resubmit } = this.#work.vendorOf(task)?.tasks ?? {};
    const isLast = resubmit === "blind" || isOverdue;
    const failures = task.failure_count + 1;
    const lost = await this.#work.transition(work, {
      event: "lose",
      set: { failure_count: failures },
      ...(!isLast && { releaseMs: this.#work.pause(task.failure_count) }),
    });
    if (lost === undefined || !isLast) return;
    if (isOverdue) return this.#work.fail({ ...work, task: lost }, timedOut);
    return this.recover({ ...work, task: lost });
  }

  /** There was no connection: tries the next vendor, or the first one later. */
  async #unsent(work: Work, error: HttpFailure): Promise<void> {
    const { task } = work;
    this.#reportSubmit(task, "unsent");
    this.#places.lost(task, error);
    const failures = task.failure_count + 1;
    const failure = { code: ErrorCode.UPSTREAM_ERROR, message: "the vendor could not be reached" };
    if (failures >= taskConnectsMax) return this.#work.fail(work, failure);
    this.#work.warn("a vendor could not be reached", { vendor: task.vendor, err: error });
    if (await this.#tryNextRoute(work, failures)) return;
    if (work.hasFailed === true) return this.#work.fail(work, failure);
    await this.#requeue(work, failures);
  }

  async #refuse(work: Work, refused: TaskRefused): Promise<void> {
    const { isTemporary, retryAfterSeconds = 0 } = refused;
    this.#reportSubmit(work.task, isTemporary ? "later" : "refused");
    this.#places.refused(work.task, refused);
    if (await this.#tryNextCredential(work, refused)) return;
    this.#vendorHealth.onSubmitRefused(work.task, refused);
    await this.#tryNext(work, refused, retryAfterSeconds * 1_000);
  }

  /**
   * Continues a task that its vendor has refused or would refuse: elsewhere, later, or not at all.
   */
  async #tryNext(work: Work, refused: TaskRefused, waitMs: number): Promise<void> {
    const { isTemporary, canRetryElsewhere, code, message, fault } = refused;
    const { task } = work;
    const hasFailed = work.hasFailed === true || !isTemporary;
    const isAwaited = work.isAwaited === true || (isTemporary && fault === undefined);
    const on = { ...work, hasFailed, isAwaited };
    if (canRetryElsewhere && (await this.#tryNextRoute(on, task.failure_count))) return;
    // A fault that the operator must fix may take days: the client gets an error earlier.
    const leftMs = isAwaited ? Number.POSITIVE_INFINITY : this.#faultLeftMs(task);
    if (hasFailed || leftMs <= 0) return this.#work.fail(work, { code: faultCode(code), message });
    // Retried without a limit: the deadline ends it.
    await this.#requeue(work, task.failure_count, { leastMs: waitMs, mostMs: leftMs });
  }

  /** Remaining time for which a task may wait until the operator fixes a fault. */
  #faultLeftMs(task: TaskRow): number {
    const runMs = this.#work.runMs(task.model);
    return task.left_ms - runMs + Math.min(this.#work.timings.faultMs, runMs / 2);
  }

  /**
   * Submits with another credential of the vendor, if only this one was refused. Returns whether
   * there is one.
   */
  async #tryNextCredential(work: Work, { isTemporary, fault }: TaskRefused): Promise<boolean> {
    const { task } = work;
    const isOfCredential = isTemporary || fault === "credential" || fault === "money";
    if (!isOfCredential || task.credential === "" || task.cancel_requested) return false;
    const refusedCredentials = new Set([...(work.refusedCredentials ?? []), task.credential]);
    const credential = await this.#places.choose(task, refusedCredentials);
    if (credential === undefined) return false;
    const moved = await this.#work.transition(work, { set: { credential } });
    if (moved === undefined) return true;
    const whole = await this.#work.withParams({ ...work, task: moved });
    await this.#submit({ ...work, refusedCredentials, task: whole });
    return true;
  }

  /**
   * Submits to the next vendor of the model. Returns whether there is one, or the task was
   * cancelled.
   */
  async #tryNextRoute(work: Work, failures: number): Promise<boolean> {
    const { task } = work;
    if (task.cancel_requested) {
      await this.#work.cancel(work);
      return true;
    }
    const { next, triedRoutes } = nextRoute(this.#work, work);
    if (next === undefined) return false;
    const { vendor, model } = next;
    const set = { vendor, vendor_model: model, credential: "", failure_count: failures };
    // The intent is made durable for each vendor.
    const moved = await this.#work.transition(work, { set });
    const refusedCredentials = new Set<string>();
    if (moved !== undefined) {
      await this.submit({ ...work, task: moved, triedRoutes, refusedCredentials });
    }
    return true;
  }

  /** Queues the task again for the first vendor, after a pause. */
  async #requeue(work: Work, failures: number, { leastMs, mostMs } = anyTime): Promise<void> {
    const polls = work.task.poll_count + 1;
    const set = {
      vendor: "",
      vendor_model: "",
      credential: "",
      failure_count: failures,
      poll_count: polls,
    };
    const releaseMs = Math.min(mostMs, Math.max(leastMs, this.#work.pause(polls)));
    await this.#work.transition(work, { event: "requeue", set, releaseMs });
  }

  /** Releases the task unchanged, for another process to continue at once. */
  async #releaseNow(work: Work): Promise<void> {
    await this.#work.release(work, 0);
  }

  #callback({ attempt_token: token }: TaskRow): { callbackUrl?: string } {
    const { callbackUrl } = this.#work.options;
    return callbackUrl === undefined || token === null ? {} : { callbackUrl: callbackUrl(token) };
  }

  #reportSubmit(
    { vendor }: TaskRow,
    outcome: Parameters<NonNullable<TaskWork["options"]["onSubmit"]>>[1],
  ) {
    this.#work.options.onSubmit?.(vendor, outcome);
  }
}

const anyTime = { leastMs: 0, mostMs: Number.POSITIVE_INFINITY };

/** The vendor's charge for a task that this process stopped. */
function stoppedBy(error: unknown): Stopped {
  return error instanceof TaskStopped ? { reportedCost: error.reportedCost } : {};
}

const busy = temporaryRefusal("the vendor's credentials have no capacity");

function temporaryRefusal(message: string): TaskRefused {
  return new TaskRefused("upstream_error", message, true);
}

/**
 * The next route of the task's model, among vendors that are configured in this process and have
 * not refused the task. Undefined if there is none.
 */
function nextRoute(
  { options, vendorOf }: TaskWork,
  { task, triedRoutes: before = [] }: Work,
): { readonly next: RouteConfig | undefined; readonly triedRoutes: readonly RouteConfig[] } {
  const model = options.config.models.get(task.model);
  const isHere = (r: RouteConfig): boolean =>
    r.vendor === task.vendor && r.model === task.vendor_model;
  const here = model?.routes.find(isHere);
  if (model === undefined || here === undefined) return { next: undefined, triedRoutes: before };
  const triedRoutes = [...before, here];
  const open = model.routes.filter(({ vendor, model: name }) => {
    const isTried = triedRoutes.some((r) => r.vendor === vendor && r.model === name);
    return !isTried && vendorOf({ ...task, vendor, vendor_model: name, credential: "" });
  });
  const { routing } = options;
  return { next: routing ? routing.chooseRoute(model, open) : open[0], triedRoutes };
}

/**
 * The vendor task id of a callback, if the vendor confirms it. Otherwise `isOpen` is whether the
 * vendor could not be polled, so that the answer is still open.
 */
export async function resolveVendorTaskId(
  tools: TaskWork,
  { task, signal }: Work,
  { tasks }: WorkerVendor,
): Promise<{ readonly vendorTaskId: string } | { readonly isOpen: boolean }> {
  try {
    const vendorTaskId = await confirmVendorTaskId(tasks, task, signal);
    return vendorTaskId === undefined ? { isOpen: false } : { vendorTaskId };
  } catch (error) {
    if (!signal.aborted) {
      const { id: taskId, vendor } = task;
      tools.warn("a callback could not be checked", { taskId, vendor, err: error });
    }
    return { isOpen: true };
  }
}
