/** What a task made. */
import { FileDown } from "lucide-react";
import type { Task, TaskFile } from "../../../gen/uas/task/v1/task_pb.ts";
import { useText } from "../language.tsx";
import { msOf } from "../time.ts";
import { buttonClass } from "../ui/button.tsx";
import { Time } from "../ui/show.tsx";
import { useNow } from "../use-now.ts";

/** What a task made: files to see, hear and fetch, or a text. */
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

/** Files are served by the gateway itself: asked for here under whatever address the console has. */
function localUrl(url: string): string {
  const path = URL.parse(url, location.href)?.pathname ?? "";
  return path.startsWith("/files/") ? path : url;
}

function ResultFile({ file, label }: { file: TaskFile; label: string }) {
  const url = localUrl(file.url);
  const [kind = ""] = file.contentType.split("/");
  return (
    <figure className="overflow-hidden rounded-xl border border-line bg-sunken">
      {kind === "image" && <img src={url} alt={label} className="max-h-96 w-full object-contain" />}
      {kind === "audio" && (
        // oxlint-disable-next-line jsx-a11y/media-has-caption -- nobody has captions of what a model made
        <audio controls src={url} aria-label={label} className="w-full p-3" />
      )}
      {kind === "video" && (
        // oxlint-disable-next-line jsx-a11y/media-has-caption -- nobody has captions of what a model made
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
