/** The draft: its state, the difference to what is in force, and applying it. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Code, ConnectError } from "@connectrpc/connect";
import { Link } from "@tanstack/react-router";
import { CircleCheck, LoaderCircle, TriangleAlert } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import type { ConfigRevision, ProcessConfig } from "../../../gen/uas/config/v1/config_pb.ts";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { Card } from "../ui/card.tsx";
import { Confirm, Dialog } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { Form, useDone } from "../ui/form.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { useToast } from "../ui/toast.tsx";
import type { Draft } from "./draft.ts";
import { type Check, useEditor } from "./editor.tsx";
import { Plan } from "./plan.tsx";
import { DifferenceTable, ProblemList } from "./problem-list.tsx";
import { useConfigurationText } from "./text.ts";

/** The bar at the end of the window while there is a draft. */
export function DraftBar({
  draft,
  onDiscard,
  onApplied,
}: {
  draft: Draft;
  onDiscard: () => void;
  onApplied: (revision: ConfigRevision) => void;
}) {
  const text = useConfigurationText();
  const toast = useToast();
  const { check, config } = useEditor();
  const [open, setOpen] = useState<"review" | "discard">();
  const isOutdated = draft.base.etag !== config.etag;
  const canApply = !check.isPending && check.error === null && check.problems.length === 0;
  return (
    <section
      aria-label={text.draft}
      data-bar
      className="sticky bottom-3 z-20 flex flex-wrap items-center gap-3 rounded-xl border border-line-strong bg-surface px-5 py-3 shadow-float"
    >
      <span className="font-medium">{text.draft}</span>
      <span role="status" className="min-w-0 flex-1">
        <CheckState check={check} />
      </span>
      <Button onClick={() => setOpen("discard")}>{text.discard}</Button>
      <Button tone="primary" disabled={!canApply || isOutdated} onClick={() => setOpen("review")}>
        {text.review}
      </Button>
      <Confirm
        isOpen={open === "discard"}
        onClose={() => setOpen(undefined)}
        onConfirm={() => {
          onDiscard();
          toast({ title: text.discarded });
        }}
        title={text.discardTitle}
        confirm={text.discardConfirm}
        isBusy={false}
        error={undefined}
      >
        <p>{text.discardBody}</p>
      </Confirm>
      {open === "review" && (
        <ApplyDialog draft={draft} onApplied={onApplied} onClose={() => setOpen(undefined)} />
      )}
    </section>
  );
}

function CheckState({ check }: { check: Check }) {
  const text = useConfigurationText();
  const { isPending, error, problems, warnings, differences } = check;
  if (error !== null) return <ErrorNote error={error} />;
  if (isPending) return <span className="text-muted">{text.checking}</span>;
  if (problems.length > 0) {
    return (
      <span className="flex flex-col gap-1">
        <span>
          <Badge tone="bad">{text.problemsOf(problems.length)}</Badge>
        </span>
        <span className="text-xs break-words text-muted">
          {problems[0]?.path} {problems[0]?.message}{" "}
          <Link
            to="/configuration"
            search={{ tab: "document" }}
            className="text-accent underline underline-offset-4"
          >
            {text.toDocument}
          </Link>
        </span>
      </span>
    );
  }
  return (
    <span className="flex flex-wrap items-center gap-2">
      <Badge tone="good">{text.valid}</Badge>
      <span>{text.changes(differences.length)}</span>
      {warnings.length > 0 && <Badge tone="warn">{text.warnings(warnings.length)}</Badge>}
    </span>
  );
}

/** Shows the difference and the warnings, asks for the reason, and applies. */
function ApplyDialog({
  draft,
  onApplied,
  onClose,
}: {
  draft: Draft;
  onApplied: (revision: ConfigRevision) => void;
  onClose: () => void;
}) {
  const text = useConfigurationText();
  const { common } = useText();
  const { check, config } = useEditor();
  const queries = useQueryClient();
  const finish = useDone(onClose);
  const formId = useId();
  const [note, setNote] = useState("");
  const apply = useMutation(ConfigService.method.applyConfig, {
    onSuccess: async ({ revision }) => {
      if (revision === undefined) return;
      onApplied(revision);
      await finish(text.applied(revision.revision.toString()));
    },
    onError: async (error) => {
      if (ConnectError.from(error).code !== Code.Aborted) return;
      // The page explains what was changed meanwhile, and keeps the draft.
      await queries.invalidateQueries();
      onClose();
    },
  });
  return (
    <Dialog
      isOpen
      width="wide"
      onClose={onClose}
      title={text.reviewTitle}
      description={text.reviewHint}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button
            type="submit"
            form={formId}
            tone="primary"
            isBusy={apply.isPending}
            disabled={
              check.isPending || check.problems.length > 0 || config.etag !== draft.base.etag
            }
          >
            {text.apply}
          </Button>
        </>
      }
    >
      <Form
        id={formId}
        className="flex flex-col gap-5"
        onSubmit={() =>
          apply.mutate({ document: draft.document, etag: draft.base.etag, note: note.trim() })
        }
      >
        {check.warnings.length > 0 && <ProblemList tone="warn" problems={check.warnings} />}
        <div className="-mx-6">
          <DifferenceTable label={text.differences} differences={check.differences} />
        </div>
        {check.needsRestart.length > 0 && (
          <p className="text-[0.8125rem] text-warn">
            {text.restartOf}{" "}
            <span className="font-mono text-xs">{check.needsRestart.join(", ")}</span>
          </p>
        )}
        <Plan document={draft.document} />
        <TextField
          label={text.note}
          hint={text.noteHint}
          value={note}
          required
          maxLength={200}
          onChange={({ target }) => setNote(target.value)}
        />
        <ErrorNote error={apply.error} />
      </Form>
    </Dialog>
  );
}

/** Whether all processes have the revision that was applied last. */
export function AppliedNote({
  revision: { revision, hash },
  processes,
}: {
  revision: ConfigRevision;
  processes: readonly ProcessConfig[];
}) {
  const text = useConfigurationText();
  if (hash === "") return null;
  const number = revision.toString();
  const missing = processes.filter((process) => process.hash !== hash);
  const failed = missing.filter(({ problem }) => problem !== "");
  if (missing.length === 0) {
    return (
      <Applied icon={<CircleCheck aria-hidden="true" className="size-4 shrink-0 text-good" />}>
        {text.appliedAll(number, processes.length)}
      </Applied>
    );
  }
  if (failed.length === 0) {
    return (
      <Applied
        icon={
          <LoaderCircle aria-hidden="true" className="size-4 shrink-0 animate-spin text-muted" />
        }
      >
        {text.appliedWait(number)}
      </Applied>
    );
  }
  const names = failed.map(({ name, problem }) => `${name} (${problem})`).join("; ");
  return (
    <Applied icon={<TriangleAlert aria-hidden="true" className="size-4 shrink-0 text-warn" />}>
      {text.appliedMissing(number, names)}
    </Applied>
  );
}

function Applied({ icon, children }: { icon: ReactNode; children: ReactNode }) {
  return (
    <Card className="px-5 py-3">
      <p role="status" className="flex items-center gap-2 text-[0.8125rem]">
        {icon}
        <span className="min-w-0 break-words">{children}</span>
      </p>
    </Card>
  );
}
