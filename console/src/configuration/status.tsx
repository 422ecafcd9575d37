/** The configuration in force: its source, and the processes that have it. */
import { CircleCheck, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { Config, ProcessConfig } from "../../../gen/uas/config/v1/config_pb.ts";
import { Card, CardHead, Facts } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Badge, Time } from "../ui/show.tsx";
import { Table } from "../ui/table.tsx";
import { ProblemList } from "./problem-list.tsx";
import { readProblem } from "./problems.ts";
import { type ConfigurationTexts } from "../text/en/configuration.ts";
import { useConfigurationText } from "./text.ts";

/** The name of a source. */
export function sourceName(
  { source, revision }: Pick<Config, "source" | "revision">,
  text: ConfigurationTexts,
): string {
  if (revision > 0n) return text.revision(revision.toString());
  return source === "built-in demo" ? text.builtIn : source;
}

/** The configuration in force, with everything that an operator has to know about it. */
export function StatusCard({
  config,
  processes,
}: {
  config: Config;
  processes: readonly ProcessConfig[];
}) {
  const text = useConfigurationText();
  const differing = processes.filter(({ hash }) => hash !== config.hash);
  const isUniform = differing.length === 0;
  const hasProblem = processes.some(({ problem }) => problem !== "");
  return (
    <Card>
      <CardHead title={text.inForce} />
      <div className="flex flex-col gap-4 px-5 pb-5">
        <Facts
          rows={[
            [
              text.source,
              <span key="source" className="font-medium break-all">
                {sourceName(config, text)}
              </span>,
            ],
            [text.hash, <Id key="hash" value={config.hash} />],
            [text.loaded, <Time key="time" isRelative time={config.loadTime} />],
          ]}
        />
        <Notes config={config} />
        {processes.length > 0 && (
          <Note isGood={isUniform}>
            {isUniform
              ? text.sameEverywhere(processes.length, config.hash)
              : text.differing(differing.length, processes.length)}
          </Note>
        )}
      </div>
      {(!isUniform || hasProblem) && <Processes config={config} processes={processes} />}
    </Card>
  );
}

function Notes({ config }: { config: Config }) {
  const text = useConfigurationText();
  const { problem, needsRestart, fileDiffers, revision, warnings } = config;
  return (
    <>
      {problem !== "" && (
        <Note>
          {text.lastProblem}
          <span className="mt-1 block font-mono text-xs break-words whitespace-pre-wrap">
            {problem}
          </span>
        </Note>
      )}
      {needsRestart.length > 0 && (
        <Note>
          {text.needsRestart}{" "}
          <span className="font-mono text-xs break-words">{needsRestart.join(", ")}</span>
        </Note>
      )}
      {fileDiffers && revision === 0n && <Note>{text.fileDiffers}</Note>}
      {fileDiffers && revision > 0n && (
        <p className="text-[0.8125rem] text-muted">{text.fileUnused}</p>
      )}
      {warnings.length > 0 && (
        <div className="flex flex-col gap-2">
          <p className="font-medium">{text.warnings(warnings.length)}</p>
          <ProblemList
            tone="warn"
            problems={warnings.map((line) => readProblem(line.replace(`${config.source}:`, "")))}
          />
        </div>
      )}
    </>
  );
}

/** A statement with its meaning as an icon: a warning, unless it is good. */
export function Note({ isGood = false, children }: { isGood?: boolean; children: ReactNode }) {
  const Icon = isGood ? CircleCheck : TriangleAlert;
  return (
    <div className="flex items-start gap-2 text-[0.8125rem]">
      <Icon
        aria-hidden="true"
        className={`mt-0.5 size-4 shrink-0 ${isGood ? "text-good" : "text-warn"}`}
      />
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
}

function Processes({ config, processes }: { config: Config; processes: readonly ProcessConfig[] }) {
  const text = useConfigurationText();
  return (
    <Table
      label={text.processes}
      columns={[
        {
          id: "process",
          title: text.process,
          cell: ({ name, processId, problem }: ProcessConfig) => (
            <span className="block min-w-32">
              <span className="font-medium break-all">{name || processId}</span>
              {problem !== "" && (
                <span className="mt-0.5 block text-xs break-words text-bad">{problem}</span>
              )}
            </span>
          ),
        },
        {
          id: "state",
          title: text.hash,
          cell: ({ hash }) => (
            <span className="flex flex-wrap items-center gap-2">
              <span className="font-mono text-xs">{hash}</span>
              {hash === config.hash ? (
                <Badge tone="good">{text.same}</Badge>
              ) : (
                <Badge tone="warn">{text.differs}</Badge>
              )}
            </span>
          ),
        },
        {
          id: "source",
          title: text.source,
          from: "sm",
          cell: ({ source }) => <span className="break-all">{source}</span>,
        },
        {
          id: "time",
          title: text.loaded,
          from: "md",
          cell: ({ loadTime }) => <Time isRelative time={loadTime} />,
        },
      ]}
      rows={processes}
      keyOf={({ processId }) => processId}
      empty={null}
    />
  );
}
