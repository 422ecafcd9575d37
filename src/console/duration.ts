import { durationMs, type Duration } from "@bufbuild/protobuf/wkt";

/** A duration in milliseconds; 0 where there is none. */
export function millis(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}
