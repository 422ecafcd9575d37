/** Films as files, as short as they can be. */

/** A box of a file. */
export function box(name: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.length);
  head.write(name, 4, "latin1");
  return Buffer.concat([head, content]);
}

/** The head of a movie: so many units of a second's scale. */
export function movieHead(scale: number, units: number): Buffer {
  const fields = Buffer.alloc(100);
  fields.writeUInt32BE(scale, 12);
  fields.writeUInt32BE(units, 16);
  return box("mvhd", fields);
}

/** A film that says that it is so long. */
export function film(seconds: number): Buffer {
  const type = box("ftyp", Buffer.from("isom\0\0\x02\0isommp41"));
  const movie = box("moov", movieHead(1_000, seconds * 1_000));
  return Buffer.concat([type, movie, box("mdat", Buffer.alloc(64))]);
}
