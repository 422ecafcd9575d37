/** Only demo: it reads requests itself, and refuses what it cannot answer as a vendor would. */
import { isRecord, type JsonRecord, parseRecord } from "../../wire/json/value.ts";
import { bodyText } from "../operation-form.ts";
import type { VendorCall } from "../vendor.ts";

/** A request that the demo vendor refuses with status 400. */
export class DemoRequestError extends Error {
  /** The member that is wrong. */
  readonly param: string;

  constructor(param: string, rule: string) {
    super(`${param}: ${rule}`);
    this.param = param;
  }
}

/** Parses the JSON body of a call to one of these models. @throws DemoRequestError */
export function readBody(call: VendorCall, models: readonly string[]): JsonRecord {
  const body = parseRecord(bodyText(call));
  if (body === undefined) throw new DemoRequestError("body", "expected a JSON object");
  requireModel(body, models);
  return body;
}

/** Parses a form sent to one of these models. @throws DemoRequestError */
export async function readForm(
  { body, contentType = "" }: VendorCall,
  models: readonly string[],
): Promise<FormData> {
  if (!("open" in body)) throw new DemoRequestError("body", "expected a form");
  // A piece is valid only until the next one is read.
  const pieces = await Array.fromAsync(body.open(), (piece) => Buffer.from(piece));
  const headers = { "content-type": contentType };
  const form = await new Response(Buffer.concat(pieces), { headers }).formData();
  requireModel(Object.fromEntries(form), models);
  return form;
}

function requireModel({ model }: JsonRecord, models: readonly string[]): void {
  if (typeof model === "string" && models.includes(model)) return;
  throw new DemoRequestError("model", `the demo model for this is ${models.join(" or ")}`);
}

/**
 * An integer, also as the text of a form, from `least` to `most`; `otherwise` if it is absent.
 * @throws DemoRequestError
 */
export function integerMember(
  body: JsonRecord,
  name: string,
  { least = 1, most, otherwise }: { least?: number; most: number; otherwise: number },
): number {
  const value = body[name];
  if (value == null) return otherwise;
  const number = typeof value === "string" ? Number(value) : value;
  if (Number.isInteger(number) && Number(number) >= least && Number(number) <= most) {
    return Number(number);
  }
  throw new DemoRequestError(name, `expected an integer from ${least} to ${most}`);
}

/** One of several texts; the first if it is absent. @throws DemoRequestError */
export function choiceMember(body: JsonRecord, name: string, choices: readonly string[]): string {
  const choice = body[name] ?? choices[0];
  if (typeof choice === "string" && choices.includes(choice)) return choice;
  throw new DemoRequestError(name, `the demo vendor has only ${choices.join(", ")}`);
}

/** The texts in a member: a text, a list of texts, or content parts with texts. */
export function textsIn(value: unknown): string[] {
  return [value].flat().flatMap((part: unknown) => {
    if (typeof part === "string") return [part];
    return isRecord(part) && typeof part["text"] === "string" ? [part["text"]] : [];
  });
}

/** Counts tokens: four bytes each, and at least one a text. */
export function tokensOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.max(1, Math.ceil(Buffer.byteLength(text) / 4)), 0);
}
