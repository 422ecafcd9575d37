/** The processes on the database. */
import type { ProcessInfo } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { type Texts, useText } from "../language.tsx";
import { msOf } from "../time.ts";
import { useNow } from "../use-now.ts";
import { Badge } from "../ui/badge.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Time } from "../ui/show.tsx";
import { type Column, Table } from "../ui/table.tsx";

/** After how long without a sign a process counts as silent, in milliseconds: the others end its holds by then. */
const silentMs = 20_000;

/** The card. */
export function ProcessesCard({ processes }: { processes: readonly ProcessInfo[] | undefined }) {
  const {
    operator: { system: text },
  } = useText();
  return (
    <Card>
      <CardHead title={text.processes} hint={text.processesHint} />
      <Table
        label={text.processes}
        columns={columnsOf(text)}
        rows={processes}
        keyOf={({ processId }) => processId}
        empty={null}
      />
    </Card>
  );
}

function columnsOf(text: Texts["operator"]["system"]): Column<ProcessInfo>[] {
  return [
    {
      id: "name",
      title: text.process,
      cell: ({ name, processId }) => (
        <span className="block max-w-40 truncate font-medium sm:max-w-72" title={processId}>
          {name || <Id value={processId} />}
        </span>
      ),
    },
    { id: "state", title: text.state, cell: (process) => <State process={process} /> },
    {
      id: "began",
      title: text.began,
      from: "sm",
      cell: ({ startTime }) => <Time isRelative time={startTime} />,
    },
    { id: "seen", title: text.seen, cell: ({ seenTime }) => <Time isRelative time={seenTime} /> },
  ];
}

function State({ process: { ended, seenTime } }: { process: ProcessInfo }) {
  const {
    operator: { system: text },
  } = useText();
  const now = useNow();
  if (ended) return <Badge tone="neutral">{text.ended}</Badge>;
  const isSilent = seenTime === undefined || now - msOf(seenTime) > 2 * silentMs;
  return isSilent ? (
    <Badge tone="warn">{text.silent}</Badge>
  ) : (
    <Badge tone="good">{text.lives}</Badge>
  );
}
