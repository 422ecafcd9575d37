/** The playground: every model, charged and logged like any call. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { useText } from "../common/language.tsx";
import { useModels } from "../models/prices.tsx";
import { Empty, PageHead, Skeleton } from "../ui/card.tsx";
import { SelectField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import type { FunctionTool } from "./conversation.ts";
import { ChatPanel } from "./chat-panel.tsx";
import { TaskPanel } from "./media-panel.tsx";

/** `/playground`. */
export function PlaygroundPage() {
  const { playground: text, models: modelTexts, common } = useText();
  const { model: chosen } = useSearch({ from: "/inside/playground" });
  const navigate = useNavigate({ from: "/playground" });
  const { data, error, refetch } = useModels();
  // Tools are kept when the model changes, so that models can be compared.
  const [tools, setTools] = useState<readonly FunctionTool[]>([]);
  const model =
    data?.find(({ modelKey }) => modelKey === chosen) ??
    data?.find(({ type }) => type === ModelType.TEXT) ??
    data?.[0];
  return (
    <>
      <PageHead
        title={text.title}
        hint={text.hint}
        actions={
          model !== undefined && (
            <SelectField
              label={common.model}
              isLabelHidden
              className="w-64"
              value={model.modelKey}
              choices={(data ?? []).map(({ modelKey, name }) => ({ value: modelKey, label: name }))}
              onChoose={(value) => void navigate({ search: { model: value }, replace: true })}
            />
          )
        }
      />
      <ErrorNote error={error} onRetry={() => void refetch()} />
      {data === undefined && error === null && <Skeleton className="h-96" />}
      {data !== undefined && model === undefined && (
        <Empty title={modelTexts.none} hint={modelTexts.noneHint} />
      )}
      {model !== undefined &&
        (model.type === ModelType.TEXT ? (
          <ChatPanel key={model.modelKey} model={model} tools={tools} onTools={setTools} />
        ) : (
          <TaskPanel key={model.modelKey} model={model} />
        ))}
    </>
  );
}
