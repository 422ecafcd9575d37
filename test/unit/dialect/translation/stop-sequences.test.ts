/** Stop sequences that a vendor cannot take, applied to what it says. */
import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type GenerateEvent,
  GenerateEventSchema,
  ReplySchema,
  StopReason,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorCodec } from "../../../../src/dialect/codec.ts";
import { newPart } from "../../../../src/dialect/turns/parts.ts";
import { ownStops, withStops } from "../../../../src/dialect/stop-sequences.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";
import { nothingUnfinished } from "../../../../src/wire/sse/event-stream.ts";

type Kind = GenerateEvent["kind"];

const event = (kind: Kind): GenerateEvent => create(GenerateEventSchema, { kind });
const textPart = (index: number): GenerateEvent =>
  event({
    case: "partStart",
    value: {
      $typeName: "uas.inference.v1.PartStart",
      index,
      part: newPart({
        case: "text",
        value: { $typeName: "uas.inference.v1.TextPart", text: "", citations: [] },
      }),
    },
  });
const delta = (index: number, text: string): GenerateEvent =>
  create(GenerateEventSchema, {
    kind: { case: "partDelta", value: { index, delta: { case: "text", value: text } } },
  });
const partEnd = (index: number): GenerateEvent =>
  create(GenerateEventSchema, { kind: { case: "partEnd", value: { index } } });
const end = (): GenerateEvent =>
  create(GenerateEventSchema, {
    kind: { case: "end", value: { stopReason: StopReason.END, usage: { outputTokens: 99 } } },
  });

/** A vendor that sends these pieces, each in a separate event. */
function saying(pieces: readonly string[]): VendorCodec {
  const events = [textPart(0), ...pieces.map((piece) => delta(0, piece)), partEnd(0), end()];
  return {
    ...responses,
    decodeStream: () => ({
      push: () => events.splice(0, 1),
      end: () => [],
      usage: undefined,
      unfinished: nothingUnfinished,
    }),
    decodeReply: () =>
      create(ReplySchema, {
        parts: [{ kind: { case: "text", value: { text: pieces.join("") } } }],
        stopReason: StopReason.END,
      }),
  };
}

/** The text that an event adds. */
function textOf(kind: Kind): string {
  const added = kind.case === "partDelta" ? kind.value.delta : undefined;
  return added?.case === "text" ? added.value : "";
}

interface Heard {
  text: string;
  isEnded: boolean;
  stop: string;
  isCutShort: boolean;
}

function hear(pieces: readonly string[], stop: readonly string[], isReadToEnd = false): Heard {
  const decoder = withStops(saying(pieces), { stop, isReadToEnd }).decodeStream();
  const heard: Heard = { text: "", isEnded: false, stop: "", isCutShort: false };
  for (let count = 0; count < pieces.length + 3; count++) {
    for (const { kind } of decoder.push([])) {
      expect(heard.isEnded, "nothing follows the end").toBe(false);
      heard.text += textOf(kind);
      if (kind.case === "end") {
        heard.isEnded = true;
        heard.stop = kind.value.stopSequence;
      }
    }
  }
  return { ...heard, isCutShort: decoder.isCutShort ?? false };
}

/** Returns a text up to the first complete stop sequence, read one character at a time. */
function cut(text: string, stops: readonly string[]): string {
  for (let at = 1; at <= text.length; at++) {
    const ended = stops.filter((stop) => text.slice(0, at).endsWith(stop));
    if (ended.length > 0) return text.slice(0, at - Math.max(...ended.map(({ length }) => length)));
  }
  return text;
}

describe("stop sequences of a vendor that takes none", () => {
  it("end the text before the first one, however the vendor cuts it into pieces", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 6 });
    const stops = fc.array(
      letters.filter((text) => text !== ""),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(fc.array(letters), stops, fc.boolean(), (pieces, stop, isReadToEnd) => {
        const whole = pieces.join("");
        const expected = cut(whole, stop);
        const heard = hear(pieces, stop, isReadToEnd);
        expect(heard).toMatchObject({ text: expected, isEnded: true });
        expect(heard.stop === "").toBe(expected === whole);
        expect(heard.isCutShort).toBe(expected !== whole && !isReadToEnd);
        const reply = withStops(saying(pieces), { stop, isReadToEnd }).decodeReply(Buffer.alloc(0));
        expect(reply.parts[0]?.kind.value).toMatchObject({ text: expected });
        expect(reply.stopSequence === "").toBe(heard.stop === "");
        if (heard.stop !== "") expect(stop).toContain(heard.stop);
      }),
    );
  });

  it("hold back no more text than may begin one", () => {
    const decoder = withStops(saying(["one EN", "tity"]), { stop: ["END"], isReadToEnd: false });
    const stream = decoder.decodeStream();
    const texts = [1, 2, 3].map(() =>
      stream
        .push([])
        .map(({ kind }) => textOf(kind))
        .join(""),
    );
    expect(texts).toEqual(["", "one ", "ENtity"]);
  });

  it("that is read to its end for its usage come with that usage", () => {
    const stream = withStops(saying(["a", "STOP", "b"]), {
      stop: ["STOP"],
      isReadToEnd: true,
    }).decodeStream();
    const events = Array.from({ length: 6 }, () => stream.push([])).flat();
    expect(events.at(-1)?.kind).toMatchObject({
      case: "end",
      value: { stopReason: StopReason.STOP_SEQUENCE, usage: { outputTokens: 99 } },
    });
  });

  it("are refused where they are too many, and left to the vendor where it takes them", () => {
    const many = Array.from({ length: 17 }, (_none, at) => `s${at}`);
    expect(() => ownStops(responses, many)).toThrow(/at most 16/);
    expect(() => ownStops(responses, ["x".repeat(501)])).toThrow(/at most 16/);
    expect(ownStops(messages, [...many, "\n"])).toEqual(["\n"]);
    const decoder = withStops(messages, { stop: ["END"], isReadToEnd: false }).decodeStream();
    expect(decoder.constructor).toBe(messages.decodeStream().constructor);
  });
});
