import { expect, it } from "vitest";
import { StreamedInput } from "../../../src/dialect/streamed-input.ts";

it.each([
  [["{}", '{"a":1}'], '{"a":1}'],
  [["{ }", '{"a":1}'], '{"a":1}'],
  [["{\n}", '{"a":1}'], '{"a":1}'],
  [["{", " }", '{"a":1}'], '{"a":1}'],
  [[" {", "\t}", " ", '{"a":1}'], '{"a":1}'],
  [["null", '{"a":1}'], '{"a":1}'],
  [["{ ", '"a":1}'], '{ "a":1}'],
  [["{ }"], "{ }"],
])(
  "an empty object before the real input is left out, however it is written: %j",
  (pieces, whole) => {
    const input = new StreamedInput();
    let sent = "";
    for (const piece of pieces) {
      input.add(piece);
      sent += input.take();
    }
    input.complete();
    expect(sent + input.take()).toBe(whole);
  },
);
