/** While the file is in force: how to change it, and the switch to revisions. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import type { ConfigRevision, ProcessConfig } from "../../../gen/uas/config/v1/config_pb.ts";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { useEditor } from "./editor.tsx";
import { ProblemList } from "./problem-list.tsx";
import { readProblem } from "./problems.ts";
import { Note, sourceName } from "./status.tsx";
import { useConfigurationText } from "./text.ts";

/** Explains the mode, and makes the file's document revision 1. */
export function FileModeCard({
  processes,
  onApplied,
}: {
  processes: readonly ProcessConfig[];
  onApplied: (revision: ConfigRevision) => void;
}) {
  const text = useConfigurationText();
  const [isOpen, setOpen] = useState(false);
  return (
    <Card>
      <CardHead title={text.fileMode} />
      <div className="flex max-w-3xl flex-col items-start gap-3 px-5 pb-5 text-[0.8125rem]">
        <p>{text.fileModeHint}</p>
        <p>{text.switchHint}</p>
        <Button tone="primary" onClick={() => setOpen(true)}>
          {text.switchButton}
        </Button>
      </div>
      {isOpen && (
        <SwitchDialog processes={processes} onApplied={onApplied} onClose={() => setOpen(false)} />
      )}
    </Card>
  );
}

function SwitchDialog({
  processes,
  onApplied,
  onClose,
}: {
  processes: readonly ProcessConfig[];
  onApplied: (revision: ConfigRevision) => void;
  onClose: () => void;
}) {
  const text = useConfigurationText();
  const { config } = useEditor();
  const finish = useDone(onClose);
  const { document, etag } = config;
  const check = useQuery(ConfigService.method.checkConfig, { document });
  const problems = check.data?.problems ?? [];
  const others = processes.filter(({ hash }) => hash !== config.hash).length;
  const apply = useMutation(ConfigService.method.applyConfig, {
    onSuccess: async ({ revision }) => {
      if (revision !== undefined) onApplied(revision);
      await finish(text.switched);
    },
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.switchTitle}
      submit={text.switchConfirm}
      isBusy={apply.isPending}
      canSubmit={check.data !== undefined && problems.length === 0}
      error={apply.error ?? check.error}
      onSubmit={() => apply.mutate({ document, etag, note: text.switchNote })}
    >
      <p>{text.switchBody(sourceName(config, text))}</p>
      {others > 0 && <Note>{text.switchOthers(others)}</Note>}
      <p className="text-muted">{text.switchBack}</p>
      {problems.length > 0 && (
        <>
          <p>{text.switchProblems}</p>
          <ProblemList tone="bad" problems={problems.map((line) => readProblem(line))} />
        </>
      )}
    </FormDialog>
  );
}
