/** How a task stands. */
import { type Task, TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import { useText } from "../language.tsx";
import { durationText, msOf } from "../time.ts";
import { Badge, type Tone } from "../ui/badge.tsx";
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import { errorWord } from "../error-word.ts";

const tones: Readonly<Record<TaskStatus, Tone>> = {
  [TaskStatus.UNSPECIFIED]: "neutral",
  [TaskStatus.PROGRESS]: "info",
  [TaskStatus.COMPLETED]: "good",
  [TaskStatus.FAILED]: "bad",
  [TaskStatus.CANCELLED]: "neutral",
};

/** Its status; while it runs, the stage. */
export function TaskBadge({ task: { status, stage, errorCode } }: { task: Task }) {
  const { tasks: text } = useText();
  const told = status === TaskStatus.PROGRESS ? text.stages[stage] : text.statuses[status];
  return (
    <Badge tone={tones[status] ?? "neutral"}>
      {told}
      {errorCode !== ErrorCode.UNSPECIFIED && (
        <span className="font-mono">{errorWord(errorCode)}</span>
      )}
    </Badge>
  );
}

/** How far it is. */
export function TaskProgress({ task: { progress } }: { task: Task }) {
  const { tasks: text } = useText();
  return (
    <span className="flex items-center gap-2">
      <progress
        aria-label={text.progress}
        max={100}
        value={progress}
        className="h-1.5 w-20 appearance-none overflow-hidden rounded-full bg-sunken [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-sunken [&::-webkit-progress-value]:bg-accent"
      />
      <span className="text-xs text-muted tabular-nums">{progress} %</span>
    </span>
  );
}

/** How long it took, once it has ended. */
export function taskDuration({ createTime, finishTime }: Task): string | undefined {
  if (createTime === undefined || finishTime === undefined) return undefined;
  return durationText(Math.max(0, msOf(finishTime) - msOf(createTime)));
}
