import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema } from "../../gen/uas/error/v1/error_pb.ts";
import { GatewayError, type SentErrorCode, errorMeanings } from "./errors.ts";

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
