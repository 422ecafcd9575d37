/** The documented words of error codes, as records, REST bodies and the command line have them. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { ErrorCode, ErrorDetailSchema } from "../../gen/uas/error/v1/error_pb.ts";
import { errorMeanings, type SentErrorCode, GatewayError } from "./errors.ts";

/** The documented word of a code, such as `access_denied`; empty if there was no error. */
export function errorWord(code: ErrorCode): string {
  return errorMeanings[code as SentErrorCode]?.word ?? "";
}

const byWord: ReadonlyMap<string, ErrorCode> = new Map(
  Object.entries(errorMeanings)
    .map(([code, { word }]) => [word, Number(code) as ErrorCode] as const)
    // If two codes have the same word, the first one applies to every status but 401.
    .toReversed(),
);

/**
 * The code of a documented word; UNSPECIFIED if there is none.
 *
 * @param status the HTTP status of the reply, since two codes have the word `invalid_request`. Any
 * status but 401 by default
 */
export function errorCodeOf(word: string, status = 0): ErrorCode {
  const code = byWord.get(word) ?? ErrorCode.UNSPECIFIED;
  const isUnknownCaller = code === ErrorCode.INVALID_REQUEST && status === 401;
  return isUnknownCaller ? ErrorCode.UNAUTHENTICATED : code;
}

/** All documented words, in the order of the contract. */
export const errorWords: readonly string[] = [
  ...new Set(Object.values(errorMeanings).map(({ word }) => word)),
];

/** Describes any failure in one line, for people. */
export function failureMessage(error: unknown): string {
  if (error instanceof ConnectError) return connectMessage(error);
  if (error instanceof GatewayError) return withCode(error.message, error.meaning.word);
  return plainMessage(error).replace(/\s*\n\s*/g, " ");
}

function connectMessage(error: ConnectError): string {
  const [detail] = error.findDetails(ErrorDetailSchema);
  const meaning = detail && errorMeanings[detail.code as SentErrorCode];
  if (detail === undefined || meaning === undefined) return error.rawMessage;
  const retry = detail.retryDelay ? `; retry in ${durationMs(detail.retryDelay) / 1_000} s` : "";
  return `${withCode(error.rawMessage, meaning.word)}${retry}`;
}

function withCode(message: string, word: string): string {
  return `${message} (${word})`;
}

function plainMessage(error: unknown): string {
  // A refused connection to a name with two addresses is an AggregateError with an empty message.
  if (error instanceof AggregateError && error.message === "") return plainMessage(error.errors[0]);
  if (error instanceof Error) return error.message === "" ? error.name : error.message;
  return String(error);
}
