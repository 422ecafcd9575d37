/** Only demo: it draws images itself, gradients that say in their metadata that no AI made them. */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";
import type { JsonRecord } from "../../wire/json/value.ts";
import { jsonReply } from "../operation-form.ts";
import type { VendorReply } from "../reply.ts";
import type { VendorCall } from "../vendor.ts";
import { choiceMember, integerMember, readBody, readForm } from "./request.ts";

const compress = promisify(deflate);

/** The note in every file, for people and programs. */
const note = "Made by the demo vendor of UAS Gateway from the prompt's hash. Not an AI.";

/**
 * Renders a square image, a gradient between two colours, as a PNG file.
 *
 * @param source 16 bytes that determine the image
 * @param side in pixels
 * @param index distinguishes several images from the same source
 */
export async function renderImage(
  source: Buffer,
  { side, index }: { readonly side: number; readonly index: number },
): Promise<Buffer> {
  const rowBytes = 1 + side * 3;
  const rows = Buffer.alloc(rowBytes * side);
  const byte = (at: number): number => (source[at % source.length] ?? 0) ^ (index * 53);
  for (let y = 0; y < side; y += 1) {
    for (let x = 0; x < side; x += 1) {
      const share = (x + y) / (2 * side);
      for (let channel = 0; channel < 3; channel += 1) {
        // The first byte of each row is its PNG filter, 0 for no filter.
        const at = y * rowBytes + 1 + x * 3 + channel;
        rows[at] = byte(channel) * (1 - share) + byte(channel + 3) * share;
      }
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.writeUInt8(8, 8); // bits per channel
  head.writeUInt8(2, 9); // RGB
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("tEXt", Buffer.from(`Comment\0${note}`, "latin1")),
    chunk("IDAT", await compress(rows)),
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

/**
 * Makes images from images and a prompt; the same files and prompt give the same images. @throws
 * DemoRequestError
 */
export async function redraw(call: VendorCall): Promise<VendorReply> {
  const form = call.contentType === undefined ? undefined : await readForm(call, ["image"]);
  const body: JsonRecord = form ? Object.fromEntries(form) : readBody(call, ["image"]);
  choiceMember(body, "stream", ["false"]);
  const size = choiceMember(body, "size", ["512x512", "256x256", "1024x1024", "auto"]);
  const format = choiceMember(body, "response_format", ["url", "b64_json"]);
  const count = integerMember(body, "n", { most: 10, otherwise: 1 });
  const hash = createHash("sha256");
  for (const value of form?.values() ?? [JSON.stringify(body)]) {
    hash.update(typeof value === "string" ? value : Buffer.from(await value.arrayBuffer()));
  }
  const source = hash.digest();
  const side = size === "auto" ? 512 : Number.parseInt(size, 10);
  const images = await Promise.all(
    Array.from({ length: count }, (_none, index) => renderImage(source, { side, index })),
  );
  const data = images.map((image) => {
    const base64 = image.toString("base64");
    return format === "url" ? { url: `data:image/png;base64,${base64}` } : { b64_json: base64 };
  });
  return jsonReply({ created: Math.floor(Date.now() / 1_000), data });
}
