/**
 * Values of the contract as pages show them: durations as milliseconds, error codes as their
 * documented words.
 */
import { durationMs, type Duration } from "@bufbuild/protobuf/wkt";
import { ErrorCode, ErrorCodeSchema } from "../../../gen/uas/error/v1/error_pb.ts";

/** A duration in milliseconds; 0 if there is none. */
export function millis(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}

/** The documented word of an error code, such as `access_denied`; empty if there was no error. */
export function errorWord(code: ErrorCode): string {
  if (code === ErrorCode.UNSPECIFIED) return "";
  if (code === ErrorCode.UNAUTHENTICATED) return "invalid_request";
  return ErrorCodeSchema.value[code]?.localName.toLowerCase() ?? "";
}

/** The error code with a documented word; UNSPECIFIED if there is none. */
export function errorCodeOf(word: string): ErrorCode {
  const codes = ErrorCodeSchema.values.map(({ number }) => number as ErrorCode);
  return codes.find((code) => errorWord(code) === word) ?? ErrorCode.UNSPECIFIED;
}
