/** Stated lengths of files, which are charged if a vendor reports none. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { fileSeconds } from "../../../src/provider/media/length.ts";
import { bytesOf, movie, wav } from "./media-files.ts";
import { box, film, movieHead } from "./video-file.ts";

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "uas-length-"))));
afterAll(() => rmSync(folder, { recursive: true }));

function secondsOf(bytes: Buffer, contentType = "video/mp4") {
  const path = join(folder, "file");
  writeFileSync(path, bytes);
  return fileSeconds({ path, contentType, bytes: bytes.length });
}

const type = box("ftyp", Buffer.from("isom\0\0\0\0"));
const data = box("mdat", Buffer.alloc(300, "mvhd"));

/** A box whose length is of 64 bits. */
function longBox(name: string, content: Buffer): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt32BE(1);
  head.write(name, 4, "latin1");
  head.writeBigUInt64BE(BigInt(16 + content.length), 8);
  return Buffer.concat([head, content]);
}

function longHead(scale: number, units: bigint): Buffer {
  const fields = Buffer.alloc(32);
  fields[0] = 1;
  fields.writeUInt32BE(scale, 20);
  fields.writeBigUInt64BE(units, 24);
  return box("mvhd", fields);
}

function fragments(units: number): Buffer {
  const fields = Buffer.alloc(8);
  fields.writeUInt32BE(units, 4);
  return box("mvex", box("mehd", fields));
}

it.each([
  ["its head in front", film(5.5), 5.5],
  ["its head behind", Buffer.concat([type, data, box("moov", movieHead(600, 4_800))]), 8],
  [
    "long boxes",
    Buffer.concat([
      type,
      longBox("mdat", Buffer.alloc(9)),
      longBox("moov", longHead(90_000, 180_000n)),
    ]),
    2,
  ],
  [
    "fragments",
    Buffer.concat([type, box("moov", Buffer.concat([movieHead(1_000, 0), fragments(7_250)]))]),
    7.25,
  ],
  [
    "fragments that do not tell",
    Buffer.concat([type, box("moov", movieHead(1_000, 0)), data]),
    undefined,
  ],
  [
    "a length that is not known",
    Buffer.concat([type, box("moov", movieHead(1_000, 0xffff_ffff))]),
    undefined,
  ],
  ["no scale", Buffer.concat([type, box("moov", movieHead(0, 5))]), undefined],
  ["no head", Buffer.concat([type, data]), undefined],
  ["a box longer than the file", film(5).subarray(0, 40), undefined],
  [
    "a box shorter than its head",
    Buffer.concat([type, Buffer.from([0, 0, 0, 4, 1, 2, 3, 4])]),
    undefined,
  ],
  ["nothing", Buffer.alloc(0), undefined],
])("the length of a video with %s is read", async (_, bytes, seconds) => {
  expect(await secondsOf(bytes)).toBe(seconds);
});

it("sound by its own format, and nothing of what has no length", async () => {
  expect(await secondsOf(wav(2), "audio/wav")).toBe(2);
  expect(await secondsOf(film(3), "audio/mp4")).toBe(3);
  expect(await secondsOf(film(3), "image/png")).toBeUndefined();
});

it("the tracks of a movie, if its head states less than they have", async () => {
  const { seconds } = movie(300);
  expect(await secondsOf(bytesOf(movie(300, { movieUnits: 1 })), "audio/mp4")).toBe(seconds);
  expect(await secondsOf(bytesOf(movie(300, { movieUnits: 30_000 })), "audio/mp4")).toBe(30);
});
