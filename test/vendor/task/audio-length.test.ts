import * as fc from "fast-check";
import { expect, it } from "vitest";
import { renderTune } from "../../../src/vendor/demo/audio.ts";
import { type AudioFormat, audioSeconds } from "../../../src/vendor/media-length.ts";

const formats: readonly AudioFormat[] = ["mp3", "opus", "aac", "flac", "wav", "pcm"];

/** Frames of silence: MPEG 2 layer III, 24,000 samples a second, 64 kbit/s, as speech comes. */
function mp3(frames: number): Buffer {
  const frame = Buffer.alloc(192);
  frame.writeUInt32BE(0xff_f3_84_c4);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

function aac(frames: number): Buffer {
  const frame = Buffer.alloc(16);
  Buffer.from("fff1584002000c", "hex").copy(frame);
  frame.writeUInt8(0x02, 4);
  frame.writeUInt8(0x1f, 5);
  frame.writeUInt8(0xfc, 6);
  frame.writeUInt8(0x40, 3);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

function ogg(samples: number, content: string): Buffer {
  const page = Buffer.alloc(27 + 19);
  page.write("OggS", "latin1");
  page.writeBigUInt64LE(BigInt(samples), 6);
  page.write(content, 27, "latin1");
  if (content === "OpusHead") page.writeUInt16LE(312, 27 + 10);
  return page;
}

function flac(rate: number, samples: number): Buffer {
  const file = Buffer.alloc(42);
  file.write("fLaC", "latin1");
  file.writeUIntBE(rate << 4, 18, 3);
  file.writeUInt8(0xf0, 21);
  file.writeUInt32BE(samples, 22);
  return file;
}

const id3 = Buffer.concat([Buffer.from("4944330400000000010a", "hex"), Buffer.alloc(138)]);

it.each([
  ["mp3", mp3(125), 3],
  ["mp3", Buffer.concat([id3, mp3(125)]), 3],
  ["opus", Buffer.concat([ogg(0, "OpusHead"), ogg(48_000, ""), ogg(96_312, "")]), 2],
  ["aac", aac(75), (75 * 1_024) / 24_000],
  ["flac", flac(24_000, 36_000), 1.5],
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

it("a stream of FLAC does not tell", () => {
  expect(audioSeconds(flac(24_000, 0), "flac")).toBeUndefined();
});

it("R-MON-1: any bytes give a length or none, and never fail", () => {
  const whole = [
    mp3(2),
    aac(2),
    ogg(9, "OpusHead"),
    flac(24_000, 9),
    renderTune(Buffer.alloc(16), 1),
  ];
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
