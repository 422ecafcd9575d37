/**
 * Reads requests of the responses style with `background: true`, and the parameters of their tasks.
 */
import { create, type JsonObject } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ExchangeRequestSchema,
  type ExchangeRequest,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { storedResponseBytesMax } from "../../core/limits.ts";
import { asBuffer } from "../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { applyEdits } from "../../dialect/body-members.ts";
import { hasEscapedAscii } from "../../wire/json/escapes.ts";
import { parseRecord, textAt, type JsonRecord } from "../../wire/json/value.ts";
import { responses } from "../../dialect/responses/dialect.ts";

const readOptions = { alwaysStream: false, platformAliases: false } as const;

/**
 * Whether a request is for a background response; false for an invalid request, which is refused
 * later.
 */
export function asksForBackground({ dialect, body }: ExchangeRequest): boolean {
  if (dialect !== Dialect.RESPONSES) return false;
  const bytes = asBuffer(body);
  // One native search excludes nearly all requests.
  if (!bytes.includes('"background"') && !hasEscapedAscii(bytes)) return false;
  try {
    return responses.readRequest(bytes, readOptions).isBackground === true;
  } catch {
    return false;
  }
}

/** A background request that has been read. */
interface BackgroundRequest {
  /**
   * The exchange that generates the response later: streamed, and without `background`, because a
   * background response at the vendor could not be stopped and would run on unpaid.
   */
  readonly exchange: ExchangeRequest;
  /** The client's body, and as JSON. */
  readonly record: JsonRecord;
  readonly json: string;
  /** Whether the client reads the response as a stream. */
  readonly isStreamed: boolean;
}

/** Reads a background request. @throws GatewayError INVALID_REQUEST, REQUEST_TOO_LARGE */
export function readBackground(request: ExchangeRequest): BackgroundRequest {
  const bytes = asBuffer(request.body);
  if (bytes.length > storedResponseBytesMax) throw tooLong();
  const { outline, stream } = responses.readRequest(bytes, readOptions);
  const record = parseRecord(bytes.toString("utf8")) ?? {};
  if (record["store"] === false) {
    throw new GatewayError(
      ErrorCode.INVALID_REQUEST,
      "store: a background response is always stored, so that it can be retrieved: leave `store` out",
      { param: "store" },
    );
  }
  const edits = outline.members
    .filter(({ key }) => key === "background")
    .map(({ valueStart: start, valueEnd: end }) => ({ start, end, text: "false" }));
  const body = Buffer.concat(applyEdits(bytes, edits));
  const exchange = create(ExchangeRequestSchema, { ...request, body, alwaysStream: true });
  return { exchange, record, json: bytes.toString("utf8"), isStreamed: stream };
}

function tooLong(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `A background request has at most ${storedResponseBytesMax} bytes; refer to large files by URL, or send it without \`background\``,
  );
}

/** The task parameters of a background response. */
export interface BackgroundParams {
  readonly accountId: string;
  /** The id of the response. */
  readonly responseId: string;
  /** The gateway's id of the call; the response's id is derived from it. */
  readonly callId: string;
  /** The path of the request, for the call record. */
  readonly path: string;
  /** Whether the events are stored, so that the response can be streamed. */
  readonly isStreamed: boolean;
}

/** No task schema has a member of this name, so callers cannot submit it. */
const member = "response";

/** Converts to the parameters of a task. */
export function backgroundParams(params: BackgroundParams): JsonObject {
  return { [member]: { ...params } };
}

/** Reads the parameters of a task; undefined for the task generates no background response. */
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
