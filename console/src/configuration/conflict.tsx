/** A conflict with another operator, who applied a configuration meanwhile: both changes. */
import { useQuery } from "@connectrpc/connect-query";
import { useMemo } from "react";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { useActorName } from "../accounts/account.tsx";
import { Button } from "../ui/button.tsx";
import { Card } from "../ui/card.tsx";
import { Time } from "../ui/show.tsx";
import { type Change, changesOf, isOverlapping, moveChanges } from "./changes.ts";
import { ConfigText } from "./document.ts";
import type { Draft } from "./draft.ts";
import { useEditor } from "./editor.tsx";
import { DifferenceTable } from "./problem-list.tsx";
import { pathText } from "./problems.ts";
import { sourceName } from "./status.tsx";
import { useConfigurationText } from "./text.ts";

/** Explains who changed what meanwhile. The draft stays until the operator decides. */
export function ConflictCard({
  draft: { document, base },
  onChange,
}: {
  draft: Draft;
  onChange: (draft: Draft | undefined) => void;
}) {
  const text = useConfigurationText();
  const { config, inForce } = useEditor();
  const { before, own, yours, theirs } = useMemo(() => {
    const [then, edited] = [new ConfigText(base.document), new ConfigText(document)];
    const changes = { yours: changesOf(then, edited), theirs: changesOf(then, inForce) };
    return { before: then, own: edited, ...changes };
  }, [base.document, document, inForce]);
  const moveOver = (): void => {
    const state = { document: config.document, etag: config.etag };
    onChange({ document: moveChanges(before, own, config.document), base: state });
  };
  return (
    <Card className="border-warn">
      <div role="alert" className="px-5 pt-4 pb-3">
        <h2 className="text-sm font-semibold">{text.conflictTitle}</h2>
        <By />
        <p className="mt-1 text-[0.8125rem] text-muted">{text.conflictHint}</p>
      </div>
      <div className="grid grid-cols-1 lg:grid-cols-2">
        <Side title={text.theirs} changes={theirs} others={yours} />
        <Side title={text.yours} changes={yours} others={theirs} />
      </div>
      <div className="flex flex-wrap items-center gap-2 border-t border-line px-5 py-3">
        <Button tone="primary" disabled={own.isBroken} onClick={moveOver}>
          {text.moveOver}
        </Button>
        <Button onClick={() => onChange(undefined)}>{text.discardConfirm}</Button>
        <span className="text-xs text-muted">{text.moveOverHint}</span>
      </div>
    </Card>
  );
}

function By() {
  const text = useConfigurationText();
  const { config } = useEditor();
  const actorName = useActorName();
  const { data } = useQuery(ConfigService.method.listRevisions, { pageSize: 1 });
  const [newest] = data?.revisions ?? [];
  if (newest === undefined) return null;
  return (
    <p className="mt-0.5 text-[0.8125rem]">
      {text.conflictBy(sourceName(config, text), actorName(newest.author), newest.note)},{" "}
      <Time isRelative time={newest.createTime} />
    </p>
  );
}

function Side({
  title,
  changes,
  others,
}: {
  title: string;
  changes: readonly Change[];
  others: readonly Change[];
}) {
  return (
    <section className="min-w-0 border-t border-line">
      <h3 className="px-5 pt-3 text-[0.8125rem] font-semibold">{title}</h3>
      <DifferenceTable
        label={title}
        differences={changes.map((change) => ({
          path: pathText(change.path),
          before: change.before,
          after: change.after,
          isOverlap: others.some((other) => isOverlapping(change, other)),
        }))}
      />
    </section>
  );
}
