import { expect, it } from "vitest";
import { run } from "./support.ts";

it("uas schema prints the JSON Schema of uas.yaml, with a broken file and without a gateway", async () => {
  const world = { files: { "uas.yaml": "broken" } };
  const { code, out, err, opened } = await run(["schema"], world);
  expect([code, err, opened]).toEqual([0, "", []]);
  expect(JSON.parse(out)).toMatchObject({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    properties: { version: { const: 1 } },
    additionalProperties: false,
  });
  expect((await run(["schema", "--json"], world)).out).toBe(out);
});
