/**
 * `GET /export/calls.csv` and `/export/calls.jsonl` of the internal listener: streams calls, for
 * programs such as curl. The operator token is the credential.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  ConnectError,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type Transport,
} from "@connectrpc/connect";
import { ExportFormat } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { readCallFile } from "../../core/call-file.ts";
import { fromRpcError } from "../../core/errors.ts";
import { parseRfc3339 } from "../../core/rfc3339.ts";
import { invalid } from "../../core/validation.ts";
import { jsonType } from "../bodies/malformed-request.ts";
import type { RequestGate } from "./gate.ts";
import type { ServeFile } from "./internal-listener.ts";

/** Dependencies of {@link createCallFiles}. */
interface CallFilesOptions {
  readonly transport: Transport;
  /** Identifies the caller, as for the RPC. */
  readonly requestGate: RequestGate;
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** The path, with its format. */
const path = /^\/export\/calls\.(csv|jsonl)$/;

/** Creates the handler of the paths. */
export function createCallFiles(options: CallFilesOptions): ServeFile {
  return (request, response) => {
    const url = new URL(request.url ?? "", "http://localhost");
    const format = path.exec(url.pathname)?.[1];
    if (format === undefined) return false;
    void serveFile(options, { request, response, url, format });
    return true;
  };
}

interface FileRequest {
  readonly request: Request;
  readonly response: Response;
  readonly url: URL;
  readonly format: string;
}

async function serveFile(
  { transport, requestGate }: CallFilesOptions,
  { request, response, url, format }: FileRequest,
): Promise<void> {
  const ending = new AbortController();
  response.once("close", () => ending.abort());
  try {
    const contextValues = await identify(requestGate, request, url);
    const pieces = readCallFile(
      transport,
      { ...readQuery(url), format: format === "csv" ? ExportFormat.CSV : ExportFormat.JSON },
      { contextValues, signal: ending.signal },
    );
    // A refusal comes before the first piece, and is then an ordinary reply.
    const first = await pieces.next();
    response.setHeader("content-type", format === "csv" ? "text/csv" : "application/jsonl");
    await pipeline(Readable.from(joined(first, pieces)), response as Writable);
  } catch (error) {
    // A client must not take the part that was sent for the whole file.
    if (response.headersSent) response.destroy();
    else refuse(response, error);
  }
}

async function* joined(
  first: IteratorResult<string, unknown>,
  rest: AsyncIterable<string>,
): AsyncGenerator<string> {
  if (first.done !== true) yield first.value;
  yield* rest;
}

async function identify(
  requestGate: RequestGate,
  { headers }: Request,
  url: URL,
): Promise<ContextValues> {
  const values = createContextValues();
  const requestHeader = new Headers();
  for (const name of ["authorization", "x-api-key"]) {
    const value = headers[name];
    if (typeof value === "string") requestHeader.set(name, value);
  }
  const method = CallService.method.exportCalls;
  await requestGate({ requestHeader, values, method, url: url.href } as unknown as HandlerContext);
  return values;
}

function readQuery({ searchParams }: URL) {
  const fromTime = timeOf(searchParams, "from");
  const toTime = timeOf(searchParams, "to");
  const filter = { ...(fromTime && { fromTime }), ...(toTime && { toTime }) };
  return { accountId: searchParams.get("account") ?? "", filter };
}

function timeOf(query: URLSearchParams, name: string): Timestamp | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const timeMs = parseRfc3339(text);
  if (timeMs !== undefined) return timestampFromMs(timeMs);
  throw invalid(name, `${name} must be a time such as 2026-11-01 or 2026-11-01T00:00:00Z`);
}

function refuse(response: Response, error: unknown): void {
  const { message, status } = fromRpcError(ConnectError.from(error));
  response.statusCode = status;
  response.setHeader("content-type", jsonType);
  response.end(`${JSON.stringify({ error: { message } })}\n`);
}
