/** Exports of the call log: the filtered calls, as a file. */
import { createClient } from "@connectrpc/connect";
import { Download } from "lucide-react";
import { ExportFormat } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { useText } from "../common/language.tsx";
import { transport } from "../common/rpc.ts";
import type { CallSearch } from "../common/search.ts";
import { dayText } from "../common/time.ts";
import { saveFile } from "../ui/copy.tsx";
import { useAction } from "../ui/form.tsx";
import { ChoiceMenu } from "../ui/menu.tsx";
import { useErrorToast, useToast } from "../ui/toast.tsx";
import { filterOf } from "./filters.tsx";

const client = createClient(CallService, transport);

/** Downloads the calls that match the filters, as CSV or JSON Lines. */
export function ExportMenu({ accountId, search }: { accountId: string; search: CallSearch }) {
  const { calls: text } = useText();
  const toast = useToast();
  const { run, isBusy } = useAction(async (format: ExportFormat) => {
    const isWhole = await exportCalls({ accountId, search, format });
    toast(
      isWhole
        ? { title: text.exported }
        : { title: text.exportedPart, description: text.exportedPartNote },
    );
  }, useErrorToast());
  return (
    <ChoiceMenu
      label={text.export}
      tone="secondary"
      isBusy={isBusy}
      trigger={
        <>
          <Download aria-hidden="true" />
          {text.export}
        </>
      }
      groups={[]}
      footer={[
        { label: text.exportCsv, onSelect: () => run(ExportFormat.CSV) },
        { label: text.exportJson, onSelect: () => run(ExportFormat.JSON) },
      ]}
    />
  );
}

/** Saves the calls. @returns whether the file has all of them */
async function exportCalls({
  accountId,
  search,
  format,
}: {
  accountId: string;
  search: CallSearch;
  format: ExportFormat;
}): Promise<boolean> {
  const pieces: BlobPart[] = [];
  let isWhole = true;
  const request = { accountId, filter: filterOf(search), format };
  for await (const { data, nextPageToken } of client.exportCalls(request)) {
    pieces.push(new Uint8Array(data));
    if (nextPageToken !== "") isWhole = false;
  }
  const isCsv = format === ExportFormat.CSV;
  const type = isCsv ? "text/csv" : "application/x-ndjson";
  saveFile(`calls-${dayText(Date.now())}.${isCsv ? "csv" : "jsonl"}`, new Blob(pieces, { type }));
  return isWhole;
}
