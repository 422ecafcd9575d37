/** The configuration of the installation, for operators: what is in force, and its changes. */
import { useQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { ConfigRevision } from "../../../gen/uas/config/v1/config_pb.ts";
import {
  ConfigService,
  type GetConfigResponse,
} from "../../../gen/uas/config/v1/config_service_pb.ts";
import { configurationTabs } from "../common/search.ts";
import { PageHead, Skeleton } from "../ui/card.tsx";
import { Segments, SelectField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { AppliedNote, DraftBar } from "./apply.tsx";
import { ConflictCard } from "./conflict.tsx";
import { ConfigText } from "./document.ts";
import { DocumentCard } from "./document-card.tsx";
import { type DraftState, useDraft } from "./draft.ts";
import { EditorProvider, useCheck } from "./editor.tsx";
import { FileModeCard } from "./file-mode.tsx";
import { LimitsCard } from "./limits.tsx";
import { ModelsCard } from "./models.tsx";
import { PriceListsCard } from "./price-lists.tsx";
import { RevisionsCard } from "./revisions.tsx";
import { SecretsCard } from "./secrets.tsx";
import { StatusCard } from "./status.tsx";
import { useConfigurationText } from "./text.ts";
import { VendorsCard } from "./vendors.tsx";

/** Refresh interval of what is in force. */
const refreshMs = 10_000;

/** The same while processes take over what was applied, within a second. */
const soonMs = 500;

/** `/configuration`, for operators. */
export function ConfigurationPage() {
  const text = useConfigurationText();
  const [applied, setApplied] = useState<ConfigRevision>();
  const { data, error, refetch } = useQuery(
    ConfigService.method.getConfig,
    {},
    {
      refetchInterval: ({ state: { data: loaded } }) =>
        isBeingLoaded(loaded, applied) ? soonMs : refreshMs,
    },
  );
  const { config, processes = [] } = data ?? {};
  return (
    <>
      <PageHead title={text.title} hint={text.hint} />
      <div className="flex flex-col gap-6">
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {error === null && config === undefined && (
          <div aria-busy="true">
            <Skeleton className="h-64" />
          </div>
        )}
        {config !== undefined && (
          <>
            {applied?.revision === config.revision && (
              <AppliedNote revision={applied} processes={processes} />
            )}
            <Views data={{ config, processes }} onApplied={setApplied} />
          </>
        )}
      </div>
    </>
  );
}

/** Whether processes still load the revision that was applied last. */
function isBeingLoaded(
  data: Pick<GetConfigResponse, "config" | "processes"> | undefined,
  applied: ConfigRevision | undefined,
): boolean {
  if (applied === undefined || data?.config?.revision !== applied.revision) return false;
  return data.processes.some(({ hash, problem }) => hash !== applied.hash && problem === "");
}

interface Loaded extends Pick<GetConfigResponse, "processes"> {
  readonly config: NonNullable<GetConfigResponse["config"]>;
}

/** The views, on the draft if there is one. */
function Views({
  data: { config, processes },
  onApplied,
}: {
  data: Loaded;
  onApplied: (revision: ConfigRevision) => void;
}) {
  const isEditable = config.revision > 0n;
  const state = useDraft(config);
  const draft = isEditable ? state.draft : undefined;
  const written = draft?.document ?? config.document;
  const document = useMemo(() => new ConfigText(written), [written]);
  const inForce = useMemo(() => new ConfigText(config.document), [config.document]);
  const check = useCheck(written, draft !== undefined);
  const { tab = "overview" } = useSearch({ from: "/inside/operator/configuration" });
  const apply = (revision: ConfigRevision): void => {
    state.replace(undefined);
    onApplied(revision);
  };
  return (
    <EditorProvider value={{ config, document, inForce, isEditable, check, write: state.write }}>
      <Tabs />
      {draft !== undefined && draft.base.etag !== config.etag && (
        <ConflictCard draft={draft} onChange={state.replace} />
      )}
      {tab === "overview" && (
        <>
          <StatusCard config={config} processes={processes} />
          {!isEditable && <FileModeCard processes={processes} onApplied={apply} />}
        </>
      )}
      {tab === "vendors" && (
        <>
          <VendorsCard />
          {isEditable && <SecretsCard />}
        </>
      )}
      {tab === "models" && (
        <>
          <ModelsCard />
          <PriceListsCard />
        </>
      )}
      {tab === "limits" && <LimitsCard />}
      {tab === "document" && <DocumentCard />}
      {tab === "revisions" && <RevisionsCard onApplied={onApplied} />}
      {draft !== undefined && <Bar state={state} onApplied={apply} />}
    </EditorProvider>
  );
}

/** The choice of a view; on narrow windows a list, because not all of them fit. */
function Tabs() {
  const text = useConfigurationText();
  const { tab = "overview" } = useSearch({ from: "/inside/operator/configuration" });
  const navigate = useNavigate({ from: "/configuration" });
  const choice = {
    label: text.view,
    value: tab,
    choices: configurationTabs.map((value) => ({ value, label: text.tabs[value] })),
    onChoose: (chosen: typeof tab) =>
      void navigate({ search: chosen === "overview" ? {} : { tab: chosen } }),
  };
  return (
    <div>
      <div className="hidden md:block">
        <Segments {...choice} />
      </div>
      <SelectField isLabelHidden className="md:hidden" {...choice} />
    </div>
  );
}

function Bar({
  state: { draft, replace },
  onApplied,
}: {
  state: DraftState;
  onApplied: (revision: ConfigRevision) => void;
}) {
  if (draft === undefined) return null;
  return <DraftBar draft={draft} onDiscard={() => replace(undefined)} onApplied={onApplied} />;
}
