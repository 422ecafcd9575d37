/**
 * Routes and credentials of tasks, and the results that routing receives. TEXT tasks are routed as
 * calls are.
 */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { AttemptFailure } from "../../routing/breaker.ts";
import type { JobPlace, JobRouting } from "../../routing/job-routing.ts";
import { attemptFailureOfKind } from "../../routing/upstream-refusal.ts";
import type { TaskRefused, VendorFault } from "../../provider/task.ts";
import type { TaskRow } from "../task-row.ts";

type PlacedTask = Pick<TaskRow, "type" | "vendor" | "vendor_model" | "credential">;

/**
 * Chooses the vendor and credential of tasks. Without a routing every task has its vendor's first
 * credential.
 */
export class TaskPlaces {
  readonly #routing: JobRouting | undefined;

  constructor(routing: JobRouting | undefined) {
    this.#routing = routing;
  }

  /**
   * Chooses the credential of a task; empty for its vendor's only one. Undefined if none may be
   * used now.
   *
   * @param refused credentials that have refused it
   */
  choose(task: PlacedTask, refused: ReadonlySet<string> = none): Promise<string | undefined> {
    const routing = this.#of(task);
    return routing === undefined
      ? Promise.resolve("")
      : routing.chooseCredential(placeOf(task), refused);
  }

  /** The time at which a submit begins, for {@link accepted}. */
  startMs(): number {
    return this.#routing?.clock() ?? 0;
  }

  accepted(task: PlacedTask, startMs: number): void {
    this.#of(task)?.accepted(placeOf(task), startMs);
  }

  refused(task: PlacedTask, { fault, isTemporary, retryAfterSeconds }: TaskRefused): void {
    // A fault of the task is no sign of its vendor's health.
    if (fault === undefined && !isTemporary) return;
    const failure = fault === undefined ? "rate_limit" : failures[fault];
    const retryAfterMs = retryAfterSeconds && retryAfterSeconds * 1_000;
    const what = fault === undefined ? "tasks: no capacity" : whatOf(fault);
    this.#of(task)?.failed(placeOf(task), failure, { what, retryAfterMs });
  }

  /** The vendor refused to report about a task. */
  pollRefused(task: PlacedTask, fault: VendorFault): void {
    this.#of(task)?.failed(placeOf(task), failures[fault], { what: whatOf(fault) });
  }

  /** There was no answer to a submit. */
  lost(task: PlacedTask, error: unknown): void {
    const failure = error instanceof HttpFailure ? attemptFailureOfKind(error.kind) : "server";
    if (error instanceof HttpFailure && error.kind === "aborted") return;
    this.#of(task)?.failed(placeOf(task), failure, { what: "tasks: no answer to a submit" });
  }

  #of({ type }: PlacedTask): JobRouting | undefined {
    return type === ModelType.TEXT ? undefined : this.#routing;
  }
}

const none: ReadonlySet<string> = new Set();

const failures: Readonly<Record<VendorFault, AttemptFailure>> = {
  credential: "credential",
  money: "credential",
  model: "model",
};

function whatOf(fault: VendorFault): string {
  return `tasks: refuses the operator's ${fault}`;
}

function placeOf({ vendor, vendor_model: model, credential }: PlacedTask): JobPlace {
  return { vendor, model, credential };
}
