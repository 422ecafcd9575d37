/**
 * A vendor that fails before any content, in whatever form, is an error for its caller, and free.
 */
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { callerStyles, readStream } from "./caller-reading.ts";
import { type FailureForm, failureForms } from "./failures.ts";
import { useSloppyGateway, type VendorAnswer } from "./sloppy-gateway.ts";

const gateway = useSloppyGateway();

/** The answers that show a failure: to a request for a stream, and to one for a whole reply. */
function answersOf({ stream, whole }: FailureForm): readonly (readonly [boolean, VendorAnswer])[] {
  const json = whole && { body: JSON.stringify(whole), isStream: false };
  return [
    ...(stream === undefined ? [] : [[true, { body: stream, isStream: true }] as const]),
    ...(json === undefined
      ? []
      : ([
          [true, json],
          [false, json],
        ] as const)),
  ];
}

describe.each(callerStyles)("a caller of %s", (caller) => {
  const forms = failureForms.filter(({ isPassed, style }) => !isPassed || style !== caller);
  it.each(forms)("gets an error, and pays nothing: a vendor of $style that $name", async (form) => {
    for (const [stream, answer] of answersOf(form)) {
      const asking = { caller, vendor: form.style, stream };
      const { status, text, ending, nanos } = await gateway.ask(asking, answer);
      expect([nanos, ending === CallEnding.COMPLETED]).toEqual([0n, false]);
      const isStream = status === 200;
      const error = isStream ? readStream(caller, text).error : JSON.parse(text).error.message;
      expect(error).toMatch(/\w/);
      if (!isStream) expect(status).toBeGreaterThanOrEqual(500);
    }
  });
});
