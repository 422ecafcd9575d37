/**
 * The operator's credential is never shown, however a vendor spells it and however its reply is cut
 * into pieces.
 */
import { array, assert, constantFrom, nat, oneof, property, string } from "fast-check";
import { expect, it } from "vitest";
import { MaskedBody, SecretMask } from "../../../src/http/secret-mask.ts";

const secret = "sk-Vendor/Key+With=Signs&More";
const mask = new SecretMask({ authorization: `Bearer ${secret}` });

function stars(text: string): string {
  return "*".repeat(text.length);
}

it.each([
  ["as it is", secret],
  ["as JSON with escaped slashes", secret.replaceAll("/", "\\/")],
  ["as .NET writes JSON", secret.replaceAll("+", "\\u002B").replaceAll("&", "\\u0026")],
  ["as Java writes JSON", secret.replaceAll("=", "\\u003d").replaceAll("&", "\\u0026")],
  ["in an address", encodeURIComponent(secret)],
])("a secret is masked %s, and nothing else of the reply changes", (_name, spelled) => {
  const said = `{"message":"no ${spelled}, ${spelled}."}`;
  const expected = said.replaceAll(spelled, stars(spelled));
  expect(mask.text(said)).toBe(expected);
  expect(mask.bytes(Buffer.from(said)).toString()).toBe(expected);
});

it("a secret with quotes is masked as JSON writes it", () => {
  const quoted = new SecretMask({ "x-api-key": 'with"quotes\\inside' });
  const said = JSON.stringify({ message: 'no with"quotes\\inside' });
  expect(quoted.text(said)).not.toContain("quotes");
});

it("words that are too short to be secrets are left alone", () => {
  expect(new SecretMask({ "x-api-key": "short" }).text("short")).toBe("short");
});

it("a body is masked the same however it is cut, and all of it comes", () => {
  const part = oneof(
    constantFrom(secret, secret.slice(0, 9), secret.replaceAll("/", "\\/"), "sk-", "s", "\n\n"),
    string({ maxLength: 20 }),
  );
  assert(
    property(array(part, { maxLength: 12 }), array(nat(200), { maxLength: 12 }), (parts, cuts) => {
      const whole = Buffer.from(parts.join(""));
      const body = new MaskedBody(mask);
      const shown: Buffer[] = [];
      let at = 0;
      for (const end of [...cuts.toSorted((one, other) => one - other), whole.length]) {
        shown.push(body.push([whole.subarray(at, end)], false));
        at = Math.max(at, Math.min(end, whole.length));
      }
      shown.push(body.push([], true));
      expect(body.isHolding).toBe(false);
      const all = Buffer.concat(shown).toString("latin1");
      expect(all).toBe(mask.bytes(whole).toString("latin1"));
    }),
    { numRuns: 2_000 },
  );
});

it("a stream is not held back, except for the bytes that may begin a secret", () => {
  const body = new MaskedBody(mask);
  expect(body.push([Buffer.from("data: a\n\n")], false).toString()).toBe("data: a\n\n");
  expect(body.push([Buffer.from("data: sk-")], false).toString()).toBe("data: ");
  expect(body.push([Buffer.from("other\n\n")], false).toString()).toBe("sk-other\n\n");
});
