/** Reads an export of calls as one file, from RPCs that each return at most 100,000 calls. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, createClient, type Transport } from "@connectrpc/connect";
import { ExportFormat } from "../../gen/uas/billing/v1/call_pb.ts";
import {
  CallService,
  type ExportCallsRequestSchema,
} from "../../gen/uas/billing/v1/call_service_pb.ts";

/**
 * Exports all calls of a request, in pieces of whole lines. The header of CSV comes once.
 *
 * @throws ConnectError
 */
export async function* readCallFile(
  transport: Transport,
  request: MessageInitShape<typeof ExportCallsRequestSchema>,
  options: CallOptions = {},
): AsyncGenerator<string> {
  const client = createClient(CallService, transport);
  const decoder = new TextDecoder();
  for (let pageToken = "", isFirst = true; isFirst || pageToken !== ""; isFirst = false) {
    let isHeader = !isFirst && request.format !== ExportFormat.JSON;
    const pieces = client.exportCalls({ ...request, pageToken }, options);
    pageToken = "";
    for await (const { data, nextPageToken } of pieces) {
      const text = decoder.decode(data);
      yield isHeader ? text.slice(text.indexOf("\n") + 1) : text;
      isHeader = false;
      pageToken = nextPageToken;
    }
  }
}
