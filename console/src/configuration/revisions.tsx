/** The revisions: who applied what, their documents, and rolling back. */
import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { History } from "lucide-react";
import { useState } from "react";
import type { ConfigRevision } from "../../../gen/uas/config/v1/config_pb.ts";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { useActorName } from "../accounts/account.tsx";
import { paged } from "../common/rpc.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty, Facts, Skeleton } from "../ui/card.tsx";
import { CodeBlock } from "../ui/code.tsx";
import { Confirm, Sheet } from "../ui/dialog.tsx";
import { useDone } from "../ui/form.tsx";
import { Badge, ErrorNote, Time } from "../ui/show.tsx";
import { QueryTable, RowButton } from "../ui/table.tsx";
import { useEditor } from "./editor.tsx";
import { DifferenceTable, ProblemList } from "./problem-list.tsx";
import { readProblem } from "./problems.ts";
import { useConfigurationText } from "./text.ts";

/** Called with the revision that a roll-back made. */
type OnApplied = (revision: ConfigRevision) => void;

/** The list of revisions. */
export function RevisionsCard({ onApplied }: { onApplied: OnApplied }) {
  const text = useConfigurationText();
  const { isEditable } = useEditor();
  const { entry } = useSearch({ from: "/inside/operator/configuration" });
  const navigate = useNavigate({ from: "/configuration" });
  const open = (number?: bigint): void =>
    void navigate({
      search: { tab: "revisions", ...(number !== undefined && { entry: number.toString() }) },
    });
  const [isReturning, setReturning] = useState(false);
  const actorName = useActorName();
  const query = useInfiniteQuery(
    ConfigService.method.listRevisions,
    { pageSize: 50, pageToken: "" },
    paged,
  );
  return (
    <Card>
      <CardHead
        title={text.tabs.revisions}
        hint={text.revisionsHint}
        actions={isEditable && <Button onClick={() => setReturning(true)}>{text.toFile}</Button>}
      />
      <QueryTable
        query={query}
        label={text.tabs.revisions}
        columns={[
          {
            id: "revision",
            title: text.revisionTitle,
            cell: ({ revision, current }: ConfigRevision) => (
              <span className="flex flex-wrap items-center gap-2">
                <RowButton onOpen={() => open(revision)}>{revision.toString()}</RowButton>
                {current && <Badge tone="good">{text.current}</Badge>}
              </span>
            ),
          },
          {
            id: "note",
            title: text.note,
            cell: ({ note, hash }) => (
              <span className="block min-w-28 break-words">
                {note || text.absent}
                {hash === "" && (
                  <span className="block text-xs text-muted">{text.fileRevision}</span>
                )}
              </span>
            ),
          },
          {
            id: "author",
            title: text.author,
            from: "sm",
            cell: ({ author }) => actorName(author),
          },
          { id: "time", title: text.time, cell: ({ createTime }) => <Time time={createTime} /> },
        ]}
        rows={query.data?.pages.flatMap(({ revisions }) => revisions)}
        keyOf={({ revision }) => revision.toString()}
        onOpen={({ revision }) => open(revision)}
        empty={
          <Empty icon={<History />} title={text.revisionsNone} hint={text.revisionsNoneHint} />
        }
      />
      <RevisionSheet
        number={entry === undefined || !/^\d+$/.test(entry) ? undefined : BigInt(entry)}
        onClose={() => open()}
        onApplied={onApplied}
      />
      {isReturning && (
        <RollBack number={0n} onClose={() => setReturning(false)} onApplied={onApplied} />
      )}
    </Card>
  );
}

function RevisionSheet({
  number,
  onClose,
  onApplied,
}: {
  number: bigint | undefined;
  onClose: () => void;
  onApplied: OnApplied;
}) {
  const text = useConfigurationText();
  const { data, error } = useQuery(
    ConfigService.method.getRevision,
    { revision: number ?? 0n },
    { enabled: number !== undefined },
  );
  const [isRolling, setRolling] = useState(false);
  const { revision, document = "" } = data ?? {};
  return (
    <Sheet
      isOpen={number !== undefined}
      onClose={onClose}
      title={number !== undefined && text.revision(number.toString())}
      actions={
        revision !== undefined &&
        !revision.current &&
        document !== "" && <Button onClick={() => setRolling(true)}>{text.rollBack}</Button>
      }
    >
      <ErrorNote error={error} />
      {error === null && revision === undefined && <Skeleton className="h-40" />}
      {revision !== undefined && (
        <div className="flex flex-col gap-6">
          <RevisionFacts revision={revision} />
          {document !== "" && !revision.current && <Compared document={document} />}
          {document !== "" && <CodeBlock label={text.documentLabel} code={document} />}
        </div>
      )}
      {isRolling && number !== undefined && (
        <RollBack
          number={number}
          onClose={() => setRolling(false)}
          onApplied={(made) => {
            onClose();
            onApplied(made);
          }}
        />
      )}
    </Sheet>
  );
}

function RevisionFacts({ revision }: { revision: ConfigRevision }) {
  const text = useConfigurationText();
  const actorName = useActorName();
  const { note, author, createTime, hash } = revision;
  return (
    <Facts
      rows={[
        [text.note, note || text.absent],
        [text.author, actorName(author)],
        [text.time, <Time key="time" time={createTime} />],
        [text.hash, hash === "" ? text.fileRevision : hash],
      ]}
    />
  );
}

/** The differences that rolling back to a document would make. */
function Compared({ document }: { document: string }) {
  const text = useConfigurationText();
  const { data, error } = useQuery(ConfigService.method.checkConfig, { document });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <Skeleton className="h-16" />;
  return (
    <section>
      <h3 className="mb-2 font-semibold">{text.comparedToNow}</h3>
      {data.problems.length > 0 ? (
        <>
          <p className="mb-2">{text.cannotApply}</p>
          <ProblemList tone="bad" problems={data.problems.map((line) => readProblem(line))} />
        </>
      ) : data.differences.length === 0 ? (
        <p className="text-muted">{text.sameAsNow}</p>
      ) : (
        <div className="-mx-5">
          <DifferenceTable label={text.comparedToNow} differences={data.differences} />
        </div>
      )}
    </section>
  );
}

/** Asks before rolling back. @param number 0: back to the file */
function RollBack({
  number,
  onClose,
  onApplied,
}: {
  number: bigint;
  onClose: () => void;
  onApplied: OnApplied;
}) {
  const text = useConfigurationText();
  const { config } = useEditor();
  const finish = useDone(onClose);
  const rollBack = useMutation(ConfigService.method.rollBackConfig, {
    onSuccess: async ({ revision }) => {
      if (revision === undefined) return;
      onApplied(revision);
      await finish(text.rolledBack(revision.revision.toString()));
    },
  });
  const isFile = number === 0n;
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => rollBack.mutate({ revision: number, etag: config.etag, note: "" })}
      title={isFile ? text.toFileTitle : text.rollBackTitle(number.toString())}
      confirm={isFile ? text.toFileConfirm : text.rollBackConfirm}
      isBusy={rollBack.isPending}
      error={rollBack.error}
    >
      <p>{isFile ? text.toFileBody : text.rollBackBody}</p>
    </Confirm>
  );
}
