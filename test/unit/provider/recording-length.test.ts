/** Lengths of recordings with wrong headers: they are held and charged by the playable length. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { recordingSeconds } from "../../../src/provider/media/length.ts";
import { bytesPerSecondMin } from "../../../src/provider/media/source.ts";
import {
  aac,
  bytesOf,
  flac,
  fragmentedMovie,
  movie,
  mp3,
  noise,
  oggPage,
  opus,
  type Recording,
  wav,
  webm,
} from "./media-files.ts";

function measure(file: Buffer): Promise<number | undefined> {
  const readAt = (position: number, length: number) =>
    Promise.resolve(file.subarray(position, position + length));
  return recordingSeconds(readAt, file.length);
}

/** Returns the charge of a recording: an unknown format is charged by its bytes. */
async function charged(file: Buffer): Promise<number> {
  return (await measure(file)) ?? file.length / bytesPerSecondMin;
}

const asRecording = (file: Buffer, seconds: number): Recording => ({
  head: file,
  parts: [],
  seconds,
});

const honest: Readonly<Record<string, Recording>> = {
  wav: asRecording(wav(20), 20),
  "stereo wav": asRecording(wav(20, { rate: 44_100, channels: 2 }), 20),
  mp3: mp3(500),
  "mp3 of varying rates": mp3(500, true),
  aac: aac(300),
  flac: flac(200),
  opus: opus(100),
  movie: movie(300),
  "fragmented movie": fragmentedMovie(30),
  webm: webm(100),
  "webm with blocks of several frames": webm(100, { lacing: "xiph" }),
  "webm with blocks of equal frames": webm(100, { lacing: "equal" }),
  "webm with relative sizes": webm(100, { lacing: "relative" }),
};

/** Longer than what is read at once. */
const long: Readonly<Record<string, Recording>> = {
  mp3: mp3(6_000, true),
  aac: aac(5_000),
  flac: flac(1_500),
  opus: opus(1_000),
  "fragmented movie": fragmentedMovie(300),
  webm: webm(500),
};

describe("an honest recording", () => {
  test.for(Object.entries(honest))("an honest %s is as long as it says", async ([, recording]) => {
    expect(await measure(bytesOf(recording))).toBeCloseTo(recording.seconds, 1);
  });

  test.for(Object.entries(long))(
    "an honest long %s is as long as it says",
    async ([, recording]) => {
      expect(await measure(bytesOf(recording))).toBeCloseTo(recording.seconds, 1);
    },
  );

  test("an honest MP3 is measured without its tags, whatever their pictures contain", async () => {
    const { seconds } = mp3(500);
    const tag = Buffer.concat([Buffer.from("4944330400000018697f", "hex"), noise(400_639)]);
    const ape = Buffer.concat([noise(90_000), Buffer.from("APETAGEX"), Buffer.alloc(24)]);
    ape.writeUInt32LE(ape.length, ape.length - 20);
    const id3 = Buffer.concat([Buffer.from("TAG"), Buffer.alloc(125)]);
    const file = Buffer.concat([tag, bytesOf(mp3(500)), ape, id3]);
    expect(Math.abs(((await measure(file)) ?? 0) - seconds)).toBeLessThan(0.5);
  });

  test("an honest WAV is measured without the chunks around its samples", async () => {
    const plain = wav(20);
    const chunk = (name: string, length: number) => {
      const head = Buffer.alloc(8);
      head.write(name, "latin1");
      head.writeUInt32LE(length, 4);
      return Buffer.concat([head, noise(length + (length % 2))]);
    };
    const file = Buffer.concat([
      plain.subarray(0, 36),
      chunk("JUNK", 90_001),
      plain.subarray(36),
      chunk("LIST", 50_001),
      chunk("id3 ", 70_000),
    ]);
    expect(await measure(file)).toBe(20);
  });
});

describe("a header that lies", () => {
  const [mp3Head = Buffer.alloc(0)] = mp3(1).parts;
  const xing = Buffer.concat([mp3Head.subarray(0, 13), Buffer.from("Xing\0\0\0\x01\0\0\0\x01")]);
  const lies: Readonly<Record<string, Recording>> = {
    "bytes per second of a WAV": asRecording(wav(20, {}, { byteRate: 0xffff_ffff }), 20),
    "no bytes per second of a WAV": asRecording(wav(20, {}, { byteRate: 0 }), 20),
    "block of a WAV": asRecording(wav(20, {}, { blockBytes: 0xffff }), 20),
    "size of the samples of a WAV": asRecording(wav(20, {}, { dataBytes: 4 }), 20),
    "open size of a WAV": asRecording(wav(20, {}, { dataBytes: 0 }), 20),
    "frames of a VBR header": {
      ...mp3(500),
      head: Buffer.concat([xing, noise(mp3Head.length - xing.length)]),
    },
    "samples of a FLAC": flac(200, 1),
    "no samples of a FLAC": flac(200, 0),
    "positions of pages": opus(100, () => 960),
    "decreasing positions of pages": opus(100, (samples) => 1_000_000 - samples),
    "length of a movie": movie(300, { movieUnits: 1 }),
    "unknown length of a movie": movie(300, { movieUnits: 0 }),
    "all times of a movie": movie(300, { movieUnits: 1, mediaUnits: 1, sampleUnits: 1 }),
    "scale of a track": movie(300, { movieUnits: 1, mediaScale: 0xffff_ffff }),
    "times of fragments": fragmentedMovie(30, 1),
    "times of clusters": webm(100, { clusterMs: 0 }),
    "scale of times in a webm": webm(100, { scale: 1 }),
  };
  test.for(Object.entries(lies))(
    "a header that lies about the %s changes nothing",
    async ([, recording]) => {
      const seconds = await measure(bytesOf(recording));
      expect(Math.abs((seconds ?? 0) - recording.seconds)).toBeLessThan(0.05);
    },
  );

  test("a codec that is not known is charged by its bytes, or longer", async () => {
    const { head, parts, seconds } = webm(100, { codec: "A_VORBIS" });
    const bytes = Buffer.concat([head, ...parts]);
    expect(await measure(bytes)).toBeGreaterThanOrEqual((100 * 10 * 300) / bytesPerSecondMin);
    expect(await measure(bytes)).toBeGreaterThan(seconds);
    const slow = bytesOf(webm(100, { codec: "A_VORBIS", clusterMs: 5_000 }));
    expect(await measure(slow)).toBeCloseTo(495, 0);
  });

  test("a tag that claims to be the whole file hides no frames", async () => {
    const tag = Buffer.from("49443304000007797979", "hex");
    const { seconds } = mp3(500);
    expect(await measure(Buffer.concat([tag, bytesOf(mp3(500))]))).toBeCloseTo(seconds, 1);
  });

  test("a page of Ogg with a wrong checksum hides no pages", async () => {
    const { head, parts, seconds } = opus(100);
    // Its one packet claims the bytes of the pages behind it.
    const hiding = oggPage([noise(255 * 250)], { granule: 9n }).subarray(0, 27 + 251);
    const file = Buffer.concat([head, ...parts.slice(0, 2), hiding, ...parts.slice(2)]);
    expect(await charged(file)).toBeGreaterThan(seconds - 0.01);
  });

  test("a recording is never shorter than its bytes at the highest bit rate of its format", async () => {
    const [frame = Buffer.alloc(0)] = mp3(1).parts;
    const file = Buffer.concat([frame, frame, frame, noise(4_000_000)]);
    expect(await charged(file)).toBeGreaterThan(file.length / 40_000);
  });
});

describe("junk", () => {
  const framed = [
    "mp3",
    "mp3 of varying rates",
    "aac",
    "flac",
    "opus",
    "webm",
    "fragmented movie",
  ] as const;

  test.for(framed)(
    "four bytes of junk behind the first frame of %s change nothing",
    async (name) => {
      const { head, parts, seconds } = honest[name] as Recording;
      const [first = Buffer.alloc(0), ...others] = parts;
      const file = Buffer.concat([head, first, Buffer.from([0, 1, 2, 3]), ...others]);
      // Behind junk, the length of a movie is not known but bounded.
      if (name === "fragmented movie") expect(await charged(file)).toBeGreaterThan(seconds);
      else expect(await measure(file)).toBeCloseTo(seconds, 1);
    },
  );

  test.for(framed)("junk behind every frame of %s changes nothing", async (name) => {
    const { head, parts, seconds } = honest[name] as Recording;
    const file = Buffer.concat([head, ...parts.flatMap((part) => [part, Buffer.alloc(3, 0xff)])]);
    expect((await charged(file)) / seconds).toBeGreaterThan(0.99);
  });

  test("a file of junk alone is not measured", async () => {
    for (const seed of [1, 2, 3]) expect(await measure(noise(1_000_000, seed))).toBeUndefined();
  });

  const piece = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 400 }),
    // The heads of frames and pages, which claim what follows them.
    fc.constantFrom(
      ...["fff384c4", "fff3e4c4", "fffbe0c4", "fff16040ffffffc0", "fff8c508", "4f676753"].map(
        (hex) => Buffer.from(hex, "hex"),
      ),
    ),
  );
  const insertion = fc.record({ at: fc.nat(499), junk: piece });

  test("no junk between frames makes a recording shorter, beyond one per cent", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...framed),
        fc.array(insertion, { minLength: 1, maxLength: 40 }),
        async (name, insertions) => {
          const { head, parts, seconds } = honest[name] as Recording;
          const pieces = [...parts] as (Buffer | Uint8Array)[][] | Buffer[];
          const spread = pieces.map((part) => [part as Buffer | Uint8Array]);
          for (const { at, junk } of insertions) spread[at % spread.length]?.push(junk);
          const file = Buffer.concat([head, ...spread.flat()]);
          expect((await charged(file)) / seconds).toBeGreaterThan(0.99);
        },
      ),
      { numRuns: 500 },
    );
  });
});

/** Fields that no decoder plays by, as their position and length in the file. */
const lyingFields: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  wav: [
    [4, 4],
    [28, 4],
    [40, 4],
  ],
  flac: [
    [8, 10],
    [22, 20],
  ],
  opus: [
    [6, 8],
    [18, 8],
  ],
};

test("no value of a field that decoders ignore makes a recording shorter", async () => {
  const cases = Object.entries(lyingFields).flatMap(([name, fields]) =>
    fields.map((field) => ({ name, field })),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...cases),
      fc.uint8Array({ minLength: 20, maxLength: 20 }),
      async ({ name, field: [at, length] }, value) => {
        const recording = honest[name] as Recording;
        const file = Buffer.from(bytesOf(recording));
        file.set(value.subarray(0, length), at);
        expect((await charged(file)) / recording.seconds).toBeGreaterThan(0.99);
      },
    ),
    { numRuns: 500 },
  );
});

test("no times of a movie make it shorter, beyond the frames that encoders add", async () => {
  const word = fc.nat(0xffff_ffff);
  const fields = fc.record(
    { movieUnits: word, mediaUnits: word, sampleUnits: word, mediaScale: word },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(fc.nat(400), fields, async (extra, lies) => {
      const recording = movie(100 + extra, lies);
      const least = recording.seconds - Math.min(0.25, recording.seconds / 10);
      expect(await charged(bytesOf(recording))).toBeGreaterThanOrEqual(least);
    }),
  );
});

test("any bytes in a recording give a length or none, and never fail", async () => {
  const files = Object.values(honest).map(bytesOf);
  const change = fc.record({ at: fc.nat(3_000), value: fc.uint8Array({ maxLength: 8 }) });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...files),
      fc.array(change, { maxLength: 6 }),
      fc.nat(),
      async (file, changes, cut) => {
        const changed = Buffer.from(
          file.subarray(0, cut % 2 === 0 ? file.length : cut % file.length),
        );
        for (const { at, value } of changes)
          changed.set(
            value.subarray(0, Math.max(0, changed.length - at)),
            Math.min(at, changed.length),
          );
        const seconds = await measure(changed);
        expect(seconds === undefined || (Number.isFinite(seconds) && seconds > 0)).toBe(true);
      },
    ),
    { numRuns: 500 },
  );
});
