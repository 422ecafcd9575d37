/** Forms with files, as they arrive and as they go on. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { ErrorCode } from "../../../../../src/core/errors.ts";
import { readUpload } from "../../../../../src/calls/adapters/media/upload.ts";

const folder = mkdtempSync(join(tmpdir(), "uas-uploads-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const name = fc.stringMatching(/^[a-z]{1,8}$/);
const bytes = (maxLength: number) => fc.uint8Array({ maxLength });
const file = fc.record({
  name,
  fileName: fc.stringMatching(/^[ a-zé"%;]{1,12}$/),
  content: fc.oneof(
    { weight: 4, arbitrary: bytes(300) },
    // Longer than what is kept in memory.
    {
      weight: 1,
      arbitrary: fc.integer({ min: 0, max: 255 }).map((first) => longContent(400_000, first)),
    },
  ),
});

/** Bytes of which every part differs from its neighbours. */
function longContent(length: number, first: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, at) => first + at * 31 + (at >> 8));
}

const field = fc.record({ name, value: fc.string({ unit: "binary", maxLength: 50 }) });

async function* cut(body: Buffer, sizes: readonly number[]): AsyncIterable<Uint8Array> {
  for (let at = 0, turn = 0; at < body.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield body.subarray(at, at + size);
    at += size;
  }
}

/** The same, each in separate memory, as from a socket. */
async function* owned(
  body: Buffer,
  sizes: readonly number[],
  made: Uint8Array[] = [],
): AsyncIterable<Uint8Array> {
  for await (const piece of cut(body, sizes)) {
    const copy = new Uint8Array(piece);
    made.push(copy);
    yield copy;
  }
}

/** Sends a body like a socket: large pieces are freed once the next one is requested. */
async function send(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const taken: Uint8Array[] = [];
  for await (const piece of body) taken.push(new Uint8Array(piece));
  return Buffer.concat(taken);
}

async function formOf(body: Buffer, contentType: string): Promise<FormData> {
  const headers = { "content-type": contentType };
  return new Response(new Uint8Array(body), { headers }).formData();
}

async function entriesOf(form: FormData): Promise<unknown[]> {
  const entries = [...form].map(async ([each, value]) => {
    if (typeof value === "string") return [each, value];
    return [each, value.name, value.type, Buffer.from(await value.arrayBuffer()).toString("hex")];
  });
  return Promise.all(entries);
}

it("a form means the same to its vendor, whatever its parts and however it is cut, but for the model", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(file, { maxLength: 4 }),
      fc.uniqueArray(field, { selector: (each) => each.name, maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      async (files, fields, sizes, ownsPieces) => {
        const sent = new FormData();
        for (const { name: each, fileName, content } of files) {
          sent.append(each, new Blob([content], { type: "a/b" }), fileName);
        }
        sent.append("model", "public");
        for (const { name: each, value } of fields) sent.append(each, value);
        const request = new Response(sent);
        const contentType = request.headers.get("content-type") ?? "";
        const body = Buffer.from(await request.arrayBuffer());
        const pieces = ownsPieces ? owned(body, sizes) : cut(body, sizes);
        const upload = await readUpload({ pieces, ownsPieces, contentType, folder });
        expect(upload.problem).toBeUndefined();
        const { contentType: type, body: out } = upload.forVendor("vendors");
        const passed = await send(out.open());
        expect(passed.length).toBe(out.bytes);
        const expected = await formOf(body, contentType);
        expected.set("model", "vendors");
        expect(await entriesOf(await formOf(passed, type))).toEqual(await entriesOf(expected));
        await upload.close();
      },
    ),
    { numRuns: 60 },
  );
  expect(readdirSync(folder)).toEqual([]);
});

it("the memory of a long file is freed as soon as it is on disk, and what is read of it once it is sent", async () => {
  const form = new FormData();
  form.append("file", new Blob([longContent(5_000_000, 0)]));
  const request = new Response(form);
  const contentType = request.headers.get("content-type") ?? "";
  const body = Buffer.from(await request.arrayBuffer());
  const made: Uint8Array[] = [];
  const pieces = owned(body, [65_536], made);
  const upload = await readUpload({ pieces, ownsPieces: true, contentType, folder });
  expect(made.findIndex(({ length }) => length > 0)).toBe(made.length - 1);
  let last: Uint8Array | undefined;
  for await (const piece of upload.forVendor("m").body.open()) {
    if (last !== undefined && last.length >= 65_536) throw new Error("it is still there");
    last = piece;
  }
  await upload.close();
});

it.each([
  ["field", 'form-data; title="x"'],
  ["file", 'form-data; filename="a.png"'],
])("a %s without a name is refused with that reason", async (_what, disposition) => {
  const body = Buffer.from(
    `--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\ncontent-disposition: ${disposition}\r\n\r\nx\r\n--b--\r\n`,
  );
  const contentType = "multipart/form-data; boundary=b";
  const pieces = cut(body, [7]);
  const upload = await readUpload({ pieces, ownsPieces: false, contentType, folder });
  expect(upload.problem?.message).toContain("has no name");
  await upload.close();
});

/** A file as a part of a form; some lack the name that each part needs. */
const rawFile = fc.record({
  hasName: fc.boolean(),
  content: fc.stringMatching(/^[a-z\r\n-]{0,40}$/),
});

it("a form that ends at any byte, in any of its files, is malformed and ends nothing but itself", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(rawFile, { minLength: 1, maxLength: 3 }),
      fc.nat(),
      fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 3 }),
      async (files, end, sizes) => {
        const parts = files.map(
          ({ hasName, content }, index) =>
            `--b\r\ncontent-disposition: form-data; ${hasName ? `name="f${index}"; ` : ""}filename="a"\r\ncontent-type: a/b\r\n\r\n${content}\r\n`,
        );
        const whole = Buffer.from(`${parts.join("")}--b--\r\n`);
        // Its last boundary is complete without its line end.
        const body = whole.subarray(0, end % (whole.length - 2));
        const contentType = "multipart/form-data; boundary=b";
        const pieces = owned(body, sizes);
        const upload = await readUpload({ pieces, ownsPieces: true, contentType, folder });
        expect(upload.problem?.code).toBe(ErrorCode.INVALID_REQUEST);
        await upload.close();
        // The parser reports on its parts a moment later; without a listener, that ends the
        // process.
        await setImmediate();
      },
    ),
    { numRuns: 400 },
  );
});

/** A form with a file of so many bytes, and what stands before it. */
function formWith(before: string, fileBytes: number): { body: Buffer; contentType: string } {
  const head = `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`;
  const parts = [before, head, "x".repeat(fileBytes), "\r\n--b--\r\n"];
  return { body: Buffer.from(parts.join("")), contentType: "multipart/form-data; boundary=b" };
}

/** Pieces that count the requests, and record whether their reader has left them. */
function watched(body: Buffer) {
  const seen = { pieces: 0, isLeft: false };
  async function* pieces(): AsyncIterable<Uint8Array> {
    try {
      for await (const piece of owned(body, [65_536])) {
        seen.pieces++;
        yield piece;
        await setImmediate();
      }
    } finally {
      seen.isLeft = true;
    }
  }
  return { seen, pieces: pieces() };
}

/** The files below the folder that this process has open, by name or without one. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return [];
    }
  });
}

const fieldPart = (each: string): string =>
  `--b\r\ncontent-disposition: form-data; name="${each}"\r\n\r\nm\r\n`;

it("what comes behind a refusal is neither read nor kept: a field that occurs twice, then a long file", async () => {
  const { body, contentType } = formWith(fieldPart("model") + fieldPart("model"), 6_000_000);
  const { seen, pieces } = watched(body);
  const upload = await readUpload({ pieces, ownsPieces: true, contentType, folder });
  expect(upload.problem?.message).toContain("occurs twice");
  await upload.close();
  await expect.poll(() => seen.isLeft).toBe(true);
  expect(seen.pieces).toBeLessThan(10);
  if (process.platform === "linux") expect(openFiles()).toEqual([]);
});

it("a form whose client leaves at any piece leaves no file open", async () => {
  const { body, contentType } = formWith("", 3_000_000);
  for (let left = 12; left < 24; left++) {
    async function* leaving(): AsyncIterable<Uint8Array> {
      yield* owned(body.subarray(0, left * 65_536), [65_536]);
      throw new Error("the client left");
    }
    const upload = await readUpload({ pieces: leaving(), ownsPieces: true, contentType, folder });
    expect(upload.problem).toBeDefined();
    await upload.close();
    if (process.platform === "linux") expect(openFiles()).toEqual([]);
  }
});

it("a form that cannot be kept is refused, and its client is let go", async () => {
  const { body, contentType } = formWith("", 6_000_000);
  const { seen, pieces } = watched(body);
  const unusable = join(folder, "file");
  writeFileSync(unusable, "");
  const upload = await readUpload({ pieces, ownsPieces: true, contentType, folder: unusable });
  expect(upload.problem?.code).toBe(ErrorCode.SERVICE_UNAVAILABLE);
  await upload.close();
  rmSync(unusable);
  await expect.poll(() => seen.isLeft).toBe(true);
  expect(seen.pieces).toBeLessThan(40);
});
