/** A task as pages show it: followed while it runs, its status, its result. */
import { createClient } from "@connectrpc/connect";
import { FileDown } from "lucide-react";
import { useEffect, useState } from "react";
import { type Task, type TaskFile, TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { useNow } from "../common/clock.tsx";
import { useText } from "../common/language.tsx";
import { transport } from "../common/rpc.ts";
import { durationText, msOf } from "../common/time.ts";
import { buttonClass } from "../ui/button.tsx";
import { Badge, Time, type Tone } from "../ui/show.tsx";
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import { errorWord } from "../common/contract.ts";

const client = createClient(TaskService, transport);

/** Follows a task until its end. */
export function useTask(taskId: string | undefined): { task?: Task; error?: unknown } {
  const [seen, setSeen] = useState<{ task?: Task; error?: unknown }>({});
  useEffect(() => {
    if (taskId === undefined) return undefined;
    const leaving = new AbortController();
    const { signal } = leaving;
    const follow = async (): Promise<void> => {
      for await (const { task } of client.watchTask({ taskId }, { signal })) {
        if (task !== undefined) setSeen({ task });
      }
    };
    follow().catch((error: unknown) => {
      if (!signal.aborted) setSeen((before) => ({ ...before, error }));
    });
    return () => leaving.abort();
  }, [taskId]);
  return seen;
}

const tones: Readonly<Record<TaskStatus, Tone>> = {
  [TaskStatus.UNSPECIFIED]: "neutral",
  [TaskStatus.PROGRESS]: "info",
  [TaskStatus.COMPLETED]: "good",
  [TaskStatus.FAILED]: "bad",
  [TaskStatus.CANCELLED]: "neutral",
};

/** The status of a task; while it runs, its stage. */
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

/** The progress of a task. */
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

/** The duration of a task that has ended. */
export function taskDuration({ createTime, finishTime }: Task): string | undefined {
  if (createTime === undefined || finishTime === undefined) return undefined;
  return durationText(Math.max(0, msOf(finishTime) - msOf(createTime)));
}

/** The result of a task: files to view, play and download, or a text. */
export function TaskResult({ task }: { task: Task }) {
  const { tasks: text } = useText();
  const now = useNow();
  const { files, resultContent, expireTime } = task;
  if (resultContent !== undefined && resultContent !== "") {
    return (
      <section>
        <h3 className="mb-3 font-semibold">{text.result}</h3>
        <p className="max-h-96 overflow-y-auto rounded-xl border border-line bg-sunken p-4 whitespace-pre-wrap">
          {resultContent}
        </p>
      </section>
    );
  }
  if (files.length === 0) return null;
  const isExpired = expireTime !== undefined && msOf(expireTime) <= now;
  return (
    <section>
      <h3 className="mb-1 font-semibold">{text.results}</h3>
      <p className="mb-3 text-[0.8125rem] text-muted">
        {isExpired ? (
          text.expired
        ) : (
          <>
            {text.expires} <Time time={expireTime} />
          </>
        )}
      </p>
      {!isExpired && (
        <ul className="flex flex-col gap-3">
          {files.map((file, index) => (
            <li key={file.url}>
              <ResultFile file={file} label={text.file(index + 1)} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/**
 * The address of a file of the gateway, at the origin that the security policy of the page allows.
 */
function localUrl(url: string): string {
  const path = URL.parse(url, location.href)?.pathname ?? "";
  return path.startsWith("/files/") ? `${apiOrigin()}${path}` : url;
}

function ResultFile({ file, label }: { file: TaskFile; label: string }) {
  const url = localUrl(file.url);
  const [kind = ""] = file.contentType.split("/");
  return (
    <figure className="overflow-hidden rounded-xl border border-line bg-sunken">
      {kind === "image" && <img src={url} alt={label} className="max-h-96 w-full object-contain" />}
      {kind === "audio" && (
        // oxlint-disable-next-line jsx-a11y/media-has-caption -- generated media have no captions
        <audio controls src={url} aria-label={label} className="w-full p-3" />
      )}
      {kind === "video" && (
        // oxlint-disable-next-line jsx-a11y/media-has-caption -- generated media have no captions
        <video controls src={url} aria-label={label} className="max-h-96 w-full" />
      )}
      <figcaption className="flex items-center justify-between gap-3 border-t border-line bg-surface px-4 py-2 text-xs text-muted">
        <span>
          {file.contentType} · {(Number(file.sizeBytes) / 1024).toFixed(1)} KB
        </span>
        <a href={url} download className={buttonClass("quiet", "icon")} aria-label={label}>
          <FileDown aria-hidden="true" />
        </a>
      </figcaption>
    </figure>
  );
}
