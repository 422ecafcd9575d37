import * as fc from "fast-check";
import { expect, it } from "vitest";
import { renderTune } from "../../../../src/provider/demo/audio.ts";
import { type AudioFormat, audioSeconds } from "../../../../src/provider/media/length.ts";
import { aac, bytesOf, flac, mp3, opus } from "../media-files.ts";

const formats: readonly AudioFormat[] = ["mp3", "opus", "aac", "flac", "wav", "pcm"];

const [mp3File, aacFile, opusFile, flacFile] = [mp3(125), aac(75), opus(10), flac(6)].map(
  bytesOf,
) as [Buffer, Buffer, Buffer, Buffer];

const id3 = Buffer.concat([Buffer.from("4944330400000000010a", "hex"), Buffer.alloc(138)]);

it.each([
  ["mp3", mp3File, 3],
  ["mp3", Buffer.concat([id3, mp3File]), 3],
  ["opus", opusFile, (10 * 9_600 - 312) / 48_000],
  ["aac", aacFile, (75 * 1_024) / 16_000],
  ["flac", flacFile, (6 * 4_096) / 16_000],
  ["wav", renderTune(Buffer.alloc(16), 2), 2],
  ["pcm", Buffer.alloc(48_000), 1],
] as const)("%s: a file tells how long it is", (format, file, seconds) => {
  expect(audioSeconds(file, format)).toBeCloseTo(seconds, 5);
});

it("a stream of WAV that does not know its length is counted by what is there", () => {
  const file = renderTune(Buffer.alloc(16), 2);
  file.writeUInt32LE(0xff_ff_ff_ff, file.indexOf("data") + 4);
  expect(audioSeconds(file, "wav")).toBeCloseTo(2, 5);
});

it("a stream of FLAC that does not state its samples is counted by its frames", () => {
  expect(audioSeconds(bytesOf(flac(6, 0)), "flac")).toBeCloseTo((6 * 4_096) / 16_000, 5);
});

it("R-MON-1: any bytes give a length or none, and never fail", () => {
  const whole = [mp3File, aacFile, opusFile, flacFile, renderTune(Buffer.alloc(16), 1)];
  const file = fc.oneof(
    fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(fc.constantFrom(...whole), fc.nat(200), fc.nat(64), fc.nat(255))
      .map(([bytes, length, at, value]) => {
        const cut = Buffer.from(bytes.subarray(0, length));
        if (at < cut.length) cut.writeUInt8(value, at);
        return cut;
      }),
  );
  fc.assert(
    fc.property(file, fc.constantFrom(...formats), (bytes, format) => {
      const seconds = audioSeconds(bytes, format);
      expect(seconds === undefined || (Number.isFinite(seconds) && seconds >= 0)).toBe(true);
    }),
  );
});
