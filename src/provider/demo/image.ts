/** Only demo: it computes its own results. PNG files marked as not made by an AI. */
import { crc32, deflate } from "node:zlib";
import { promisify } from "node:util";

const compress = promisify(deflate);

/** The note in every file, for people and programs. */
export const demoNote = "Made by the demo vendor of UAS Gateway from the prompt's hash. Not an AI.";

/** The word DEMO as five rows of bits, so that the image is recognisable by sight. */
const wordRows = [
  "11110 11111 10001 01110",
  "10001 10000 11011 10001",
  "10001 11110 10101 10001",
  "10001 10000 10001 10001",
  "11110 11111 10001 01110",
].map((row) => row.replaceAll(" ", "0"));

/** Colour index of the word: the last palette entry. */
const inkIndex = 255;

/**
 * Renders a square image, two waves of colour and the word DEMO, as a PNG file with a palette of 256 colours.
 *
 * @param source 16 bytes that determine the image
 * @param side in pixels
 * @param index distinguishes several images from the same source
 */
export async function renderImage(
  source: Buffer,
  { side, index }: { readonly side: number; readonly index: number },
): Promise<Buffer> {
  const rows = Buffer.alloc((side + 1) * side);
  const byte = (at: number): number => (source[at % source.length] ?? 0) ^ (index * 53);
  const waves = [wave(side, byte(0), byte(1)), wave(side, byte(2), byte(3))] as const;
  for (let y = 0; y < side; y += 1) {
    // The first byte of each row is its PNG filter: none.
    const start = y * (side + 1) + 1;
    for (let x = 0; x < side; x += 1) {
      const height = (waves[0][x] ?? 0) + (waves[1][y] ?? 0) + (waves[0][(x + y) % side] ?? 0);
      rows[start + x] = Math.min(inkIndex - 1, Math.floor(height / 3));
    }
  }
  writeWord(rows, side);
  return png({ side, palette: paletteOf(byte), data: await compress(rows) });
}

/** A wave along one axis, from 0 to 254. */
function wave(side: number, turns: number, shift: number): Uint8Array {
  const frequency = (1 + (turns % 4)) * 2 * Math.PI;
  const phase = (shift / 255) * 2 * Math.PI;
  return Uint8Array.from({ length: side }, (_none, at) =>
    Math.round(127 + 127 * Math.sin((at / side) * frequency + phase)),
  );
}

function writeWord(rows: Buffer, side: number): void {
  const dot = Math.max(1, Math.floor(side / 32));
  const width = (wordRows[0]?.length ?? 0) * dot;
  const left = Math.floor((side - width) / 2);
  const top = side - wordRows.length * dot - 2 * dot;
  for (const [line, bits] of wordRows.entries()) {
    for (const [column, bit] of bits.split("").entries()) {
      if (bit !== "1") continue;
      for (let y = top + line * dot; y < top + (line + 1) * dot; y += 1) {
        const start = y * (side + 1) + 1 + left + column * dot;
        rows.fill(inkIndex, start, start + dot);
      }
    }
  }
}

/** A gradient between two colours; the last entry is white. */
function paletteOf(byte: (at: number) => number): Buffer {
  const palette = Buffer.alloc(256 * 3, 255);
  for (let index = 0; index < inkIndex; index += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      const from = byte(4 + channel);
      const to = byte(8 + channel);
      // Not up to white, so that the word stands out.
      palette[index * 3 + channel] = Math.round(((from + ((to - from) * index) / 254) * 3) / 4);
    }
  }
  return palette;
}

interface Png {
  readonly side: number;
  readonly palette: Buffer;
  readonly data: Buffer;
}

/** 8 bits per pixel, colour type 3 (palette), not interlaced. */
function png({ side, palette, data }: Png): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.writeUInt8(8, 8);
  head.writeUInt8(3, 9);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", head),
    chunk("tEXt", Buffer.from(`Comment\0${demoNote}`, "latin1")),
    chunk("PLTE", palette),
    chunk("IDAT", data),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, sum]);
}
