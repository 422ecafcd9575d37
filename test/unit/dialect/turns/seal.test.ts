import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { ReasoningSealSchema } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { openSeal, wrapSeal } from "../../../../src/dialect/turns/seal.ts";

const anyText = fc.string({ unit: "grapheme" });

describe("R-TXT-3: a foreign seal survives the way through a client", () => {
  it("byte for byte, with what goes with it", () => {
    const anyDialect = fc.constantFrom(Dialect.RESPONSES, Dialect.MESSAGES, Dialect.GEMINI);
    fc.assert(
      fc.property(
        anyDialect,
        anyText,
        anyText,
        anyText,
        anyText,
        fc.array(anyText),
        (dialect, signature, data, text, itemId, summaries) => {
          const seal = create(ReasoningSealSchema, { dialect, signature, data });
          const opened = openSeal(wrapSeal(seal, { text, itemId, summaries }));
          const sealed = signature !== "" || data !== "";
          expect(opened).toEqual({ seal: sealed ? seal : undefined, text, itemId, summaries });
        },
      ),
    );
  });

  it("a foreign seal survives in characters that every opaque field takes", () => {
    const seal = create(ReasoningSealSchema, { dialect: Dialect.RESPONSES, data: "é ☃ +/=" });
    expect(wrapSeal(seal)).toMatch(/^uas1\.[\w-]+$/);
  });

  it("foreign reasoning survives also where it has no seal at all", () => {
    expect(openSeal(wrapSeal(undefined, { text: "so" }))).toEqual({
      seal: undefined,
      text: "so",
      itemId: "",
      summaries: [],
    });
  });
});

describe("R-TXT-3: what opens", () => {
  it("leaves a vendor's own seal alone", () => {
    expect(openSeal("EqQBCkYIBxgCKkBsomeSignature==")).toBeUndefined();
    expect(openSeal("")).toBeUndefined();
  });

  it.each(["uas1.", "uas1.!!", "uas1.bnVsbA", "uas1.W10", "uas1.eyJkIjo"])(
    "reads a damaged wrap %s as no seal, never as a vendor's",
    (damaged) => {
      expect(openSeal(damaged)).toEqual({ seal: undefined, text: "", itemId: "", summaries: [] });
    },
  );
});
