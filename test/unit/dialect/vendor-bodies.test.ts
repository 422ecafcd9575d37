/** One scan of the client's body determines the hold for the vendor's body (R-MON-3). */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { textDialects } from "../../../src/dialect/index.ts";
import { measureRequest, requestSize } from "../../../src/tokens/request-tokens.ts";

const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
const text = fc.string({ unit: "grapheme", maxLength: 60 });
const content = fc.oneof(
  text,
  fc.constant([{ type: "text", text: "what is it?" }, picture]),
  fc.constant("x".repeat(70_000)),
);
const flags = fc.record(
  {
    stream: fc.constantFrom(true, false, null),
    stream_options: fc.constantFrom({ include_usage: true }, { include_usage: false }, {}, null),
    modelKey: fc.constant(true),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
  },
  { requiredKeys: [] },
);
const bodies = fc
  .tuple(fc.constantFrom("public", "vendor", 'pu"blic', "é"), content, flags, fc.nat(2))
  .map(([model, said, { modelKey, ...rest }, indent]) => {
    const messages = [{ role: "user", content: said }];
    // Both names of a model must agree.
    const alias = modelKey === undefined ? {} : { modelKey: model };
    return JSON.stringify({ model, max_tokens: 9, messages, ...rest, ...alias }, null, indent);
  });

it.each([...textDialects.values()].map((style) => [style.word, style] as const))(
  "the size that %s tells for a vendor is the size of the body that the vendor gets",
  (_, style) => {
    fc.assert(
      fc.property(bodies, fc.boolean(), (body, alwaysStream) => {
        const options = { alwaysStream, platformAliases: true };
        const request = style.readRequest(Buffer.from(body), options);
        const told = requestSize(request.sizeFor({ model: "vendor" }));
        expect(told).toEqual(measureRequest(Buffer.concat(request.forVendor({ model: "vendor" }))));
      }),
    );
  },
);

it("the platform's prompt is weighed as the message that it becomes", () => {
  const [style] = textDialects.values();
  const body = Buffer.from('{"modelKey":"public","prompt":"Hello, \\"you\\""}');
  const request = style?.readRequest(body, { alwaysStream: true, platformAliases: true });
  const sent = Buffer.concat(request?.forVendor({ model: "vendor" }) ?? []);
  expect(request?.sizeFor({ model: "vendor" }).weight).toBeGreaterThan(body.length);
  expect(request && requestSize(request.sizeFor({ model: "vendor" }))).toEqual(
    measureRequest(sent),
  );
});
