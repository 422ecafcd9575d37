/** Requests of the responses style that ask to be answered in the background. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ExchangeRequestSchema,
  type ExchangeRequest,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { storedResponseBytesMax } from "../../config/limits.ts";
import { asBuffer } from "../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { applyEdits } from "../../dialect/body-members.ts";
import { hasEscapedAscii } from "../../dialect/json/escapes.ts";
import { parseRecord, textAt, type JsonRecord } from "../../dialect/json/value.ts";
import { responses } from "../../dialect/responses/dialect.ts";

const readOptions = { alwaysStream: false, platformAliases: false } as const;

/** Whether a request asks for it. What is wrong with one is told elsewhere. */
export function asksForBackground({ dialect, body }: ExchangeRequest): boolean {
  if (dialect !== Dialect.RESPONSES) return false;
  const bytes = asBuffer(body);
  // Seldom there: one native search tells.
  if (!bytes.includes('"background"') && !hasEscapedAscii(bytes)) return false;
  try {
    return responses.readRequest(bytes, readOptions).isBackground === true;
  } catch {
    return false;
  }
}

/** What a request in the background comes to. */
interface BackgroundRequest {
  /** The exchange that makes the response later: streamed, and not in the background of its vendor, which could
   * not be stopped there and would run on unpaid. */
  readonly exchange: ExchangeRequest;
  /** The body as it came. */
  readonly record: JsonRecord;
  /** Whether the client reads the response as a stream. */
  readonly isStreamed: boolean;
}

/** Reads one. @throws GatewayError INVALID_REQUEST, REQUEST_TOO_LARGE */
export function readBackground(request: ExchangeRequest): BackgroundRequest {
  const bytes = asBuffer(request.body);
  if (bytes.length > storedResponseBytesMax) throw tooLong();
  const { outline, stream } = responses.readRequest(bytes, readOptions);
  const record = parseRecord(bytes.toString("utf8")) ?? {};
  if (record["store"] === false) {
    throw new GatewayError(
      ErrorCode.INVALID_REQUEST,
      "store: a response in the background is kept, or nobody could ask for it: leave it out",
      { param: "store" },
    );
  }
  const edits = outline.members
    .filter(({ key }) => key === "background")
    .map(({ valueStart: start, valueEnd: end }) => ({ start, end, text: "false" }));
  const body = Buffer.concat(applyEdits(bytes, edits));
  const exchange = create(ExchangeRequestSchema, { ...request, body, alwaysStream: true });
  return { exchange, record, isStreamed: stream };
}

function tooLong(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `A request in the background has at most ${storedResponseBytesMax} bytes; refer to large files by URL, or wait for the reply`,
  );
}

/* What the task of a response in the background carries: where its request is, and what its record says. */

/** See {@link backgroundOf}. */
export interface BackgroundParams {
  readonly accountId: string;
  /** The id of the response. */
  readonly responseId: string;
  /** Our id of the call, which the response's is made of. */
  readonly callId: string;
  /** The path that was called. */
  readonly path: string;
  /** Whether its events are kept, for those who want to read it as a stream. */
  readonly isStreamed: boolean;
}

/** Parameters of tasks that callers submit have closed schemas, none of which knows this name. */
const member = "response";

/** As the parameters of a task. */
export function backgroundParams(params: BackgroundParams): JsonObject {
  return { [member]: { ...params } };
}

/** What is in the parameters of a task; `undefined`: it makes no response in the background. */
export function backgroundOf(params: JsonObject): BackgroundParams | undefined {
  const found = params[member];
  if (typeof found !== "object" || found === null || Array.isArray(found)) return undefined;
  return {
    accountId: textAt(found, "accountId"),
    responseId: textAt(found, "responseId"),
    callId: textAt(found, "callId"),
    path: textAt(found, "path"),
    isStreamed: found["isStreamed"] === true,
  };
}
