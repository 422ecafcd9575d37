import { describe, expect, it } from "vitest";
import { relayImages } from "../../../../src/dialect/operations/images.ts";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";

const options = { publicModel: undefined, hideUsage: false, choices: 3 };
const count = (data: unknown): number =>
  relayImages(Buffer.from(JSON.stringify({ data })), options).images;

describe("images of a reply", () => {
  const image = { url: "https://x.example/a.png" };

  it.each([
    ["an error", { error: { code: "InternalServerError" } }],
    ["an empty address", { url: "" }],
    ["null", { url: null, b64_json: null }],
    ["nothing", {}],
  ])("that failed do not count: %s in place of one", (_name, failed) => {
    expect(count([image, failed, { b64_json: "aGk=" }])).toBe(2);
    expect(() => count([failed, failed])).toThrow(UnreadableReplyError);
  });
});
