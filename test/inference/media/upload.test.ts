/** Forms with files, as they arrive and as they go on. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { ErrorCode } from "../../../src/core/errors.ts";
import { readUpload } from "../../../src/inference/media/upload.ts";

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
      arbitrary: fc.integer({ min: 0, max: 255 }).map((each) => new Uint8Array(400_000).fill(each)),
    },
  ),
});
const field = fc.record({ name, value: fc.string({ unit: "binary", maxLength: 50 }) });

async function* cut(body: Buffer, sizes: readonly number[]): AsyncIterable<Uint8Array> {
  for (let at = 0, turn = 0; at < body.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield body.subarray(at, at + size);
    at += size;
  }
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
      async (files, fields, sizes) => {
        const sent = new FormData();
        for (const { name: each, fileName, content } of files) {
          sent.append(each, new Blob([content], { type: "a/b" }), fileName);
        }
        sent.append("model", "public");
        for (const { name: each, value } of fields) sent.append(each, value);
        const request = new Response(sent);
        const contentType = request.headers.get("content-type") ?? "";
        const body = Buffer.from(await request.arrayBuffer());
        const upload = await readUpload({ pieces: cut(body, sizes), contentType, folder });
        expect(upload.problem).toBeUndefined();
        const { contentType: type, body: out } = upload.forVendor("vendors");
        const passed = Buffer.concat(await Array.fromAsync(out.open()));
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

it.each([
  ["field", 'form-data; title="x"'],
  ["file", 'form-data; filename="a.png"'],
])("a %s without a name is refused, and says so", async (_what, disposition) => {
  const body = Buffer.from(
    `--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\ncontent-disposition: ${disposition}\r\n\r\nx\r\n--b--\r\n`,
  );
  const contentType = "multipart/form-data; boundary=b";
  const upload = await readUpload({ pieces: cut(body, [7]), contentType, folder });
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
        const upload = await readUpload({ pieces: cut(body, sizes), contentType, folder });
        expect(upload.problem?.code).toBe(ErrorCode.INVALID_REQUEST);
        await upload.close();
        // What the parser says of its parts comes a moment later; without a listener it ends the process.
        await setImmediate();
      },
    ),
    { numRuns: 400 },
  );
});
