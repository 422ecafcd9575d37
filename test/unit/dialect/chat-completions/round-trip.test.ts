import { equals, toJson } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type GenerateEvent,
  type Generation,
  GenerationSchema,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { GatewayError } from "../../../../src/core/errors.ts";
import { decode, decodeStream, encode, eventStream, replyOptions } from "./support.ts";
import { anyBody, anyReply } from "./bodies.ts";

function expectSame(actual: Generation, expected: Generation): void {
  if (equals(GenerationSchema, actual, expected)) return;
  expect(toJson(GenerationSchema, actual)).toEqual(toJson(GenerationSchema, expected));
  expect.unreachable("differs in what JSON does not show");
}

function attempt<Result>(run: () => Result): Result | GatewayError {
  try {
    return run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

/** Removes values that the target sets. */
function settled(generation: Generation): Generation {
  return { ...generation, model: "", stream: false, includeUsage: false };
}

const nodeMinor = Number(process.versions.node.split(".")[1]);

describe("R-TXT-2: a request keeps everything", () => {
  it("a request keeps everything on its way through the contract back into its own style", () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        const read = decode(body);
        const { body: written, dropped } = encode(read, Dialect.CHAT_COMPLETIONS);
        expect(dropped).toEqual([]);
        expectSame(settled(decode(written)), settled(read));
      }),
      { numRuns: 500 },
    );
  });

  // JSON.parse of Node.js 26.10 reads the second one's name as that of the first.
  it.skipIf(nodeMinor < 12)("a name keeps its escapes, whatever was read before", () => {
    for (const name of [String.raw`\\`, String.raw`\:`]) {
      const metadata = { ":": "1", [name]: "2" };
      const messages = [{ role: "user", content: "Hi" }];
      const { body } = encode(decode({ model: "m", messages, metadata }), Dialect.CHAT_COMPLETIONS);
      expect(body.metadata).toEqual(metadata);
    }
  });

  it("a request keeps everything but what came from elsewhere and has no place, which is named or refused", () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        const read = decode(body);
        const written = attempt(() => encode(read, undefined));
        if (written instanceof GatewayError) {
          expect(written.status).toBe(400);
          return;
        }
        const { dropped } = written;
        expect(new Set(dropped).size).toBe(dropped.length);
        for (const { name } of read.extras) expect(dropped).toContain(name);
      }),
      { numRuns: 200 },
    );
  });
});

describe("R-TXT-1: a stream keeps everything", () => {
  const text = (events: readonly GenerateEvent[]) =>
    events.map(({ kind }) => (kind.case === "start" ? { ...kind.value, model: "" } : kind));

  it("a stream keeps everything on its way from the contract to the wire and back", () => {
    fc.assert(
      fc.property(anyReply, (events) => {
        const encoder = chatCompletions.encodeStream(replyOptions());
        const wire = events.map((event) => encoder.push(event)).join("");
        const decoder = chatCompletions.decodeStream();
        const back = [...decoder.push([Buffer.from(wire)]), ...decoder.end()];
        expect(text(back)).toEqual(text(events));
      }),
      { numRuns: 300 },
    );
  });

  it("a stream keeps everything however its bytes are cut", () => {
    fc.assert(
      fc.property(anyReply, fc.array(fc.nat(400), { maxLength: 30 }), (events, cuts) => {
        const encoder = chatCompletions.encodeStream(replyOptions());
        const wire = Buffer.from(events.map((event) => encoder.push(event)).join(""));
        const decoder = chatCompletions.decodeStream();
        const back: GenerateEvent[] = [];
        let at = 0;
        for (const cut of cuts) {
          back.push(...decoder.push([wire.subarray(at, at + cut)]));
          at += cut;
        }
        back.push(...decoder.push([wire.subarray(at)]), ...decoder.end());
        expect(text(back)).toEqual(text(events));
      }),
      { numRuns: 100 },
    );
  });

  it("a stream is also read from lines that end with CR LF, comments, and data over several lines", () => {
    const chunk = { choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop" }] };
    const plain = decodeStream([chunk, "[DONE]"]);
    const decoder = chatCompletions.decodeStream();
    const wire = `: comment\r\n\r\n${eventStream([JSON.stringify(chunk, null, 1).replaceAll("\n", "\ndata: "), "[DONE]"]).replaceAll("\n", "\r\n")}`;
    expect([...decoder.push([Buffer.from(wire)]), ...decoder.end()]).toEqual(plain);
  });
});
