/** Bodies of which only the model counts: one name changes, no other byte (R-TXT-1). */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readModelBody } from "../../../src/dialect/body-members.ts";
import { ErrorCode, GatewayError } from "../../../src/core/errors.ts";

function refusal(body: string, required: readonly string[] = []): GatewayError {
  try {
    readModelBody(Buffer.from(body), required);
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error("it was not refused");
}

describe("a body", () => {
  it("a body goes to the vendor with another model, else as it came", () => {
    const values = fc.dictionary(
      fc.string().map((name) => `x${name}`),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(values, values, fc.string({ minLength: 1 }), fc.string(), (a, b, from, to) => {
        const write = (model: string): string => JSON.stringify({ ...a, model, ...b });
        const read = readModelBody(Buffer.from(write(from)), []);
        expect(read.model).toBe(from);
        expect(Buffer.concat(read.forVendor(to)).toString()).toBe(write(to));
        expect(Buffer.concat(read.forVendor(from))).toEqual(read.bytes);
      }),
    );
  });

  it.each([
    ['{"input":"x"}', "model"],
    ['{"model":""}', "model"],
    ['{"model":7,"input":"x"}', "model"],
    ['{"model":"m"}', "input"],
    ['{"model":"m","input":null}', "input"],
    ['{"model":"m","model":"n","input":"x"}', "model"],
    ['{"Model":"n","model":"m","input":"x"}', "Model"],
    ["[]", undefined],
  ])("a body is refused: %s", (body, param) => {
    expect(refusal(body, ["input"])).toMatchObject({ code: ErrorCode.INVALID_REQUEST, param });
  });
});
