/** Only demo: it reads requests itself. What it takes of them, and how it refuses the rest. */
import { nearest } from "../../core/suggest.ts";
import { isRecord, type JsonRecord, parseRecord } from "../../wire/json/value.ts";
import { jsonReply } from "../operation-form.ts";
import type { VendorReply } from "../reply.ts";

/** A request that the demo vendor refuses, as a real one would. */
export class DemoRequestError extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;

  constructor(status: number, message: string, detail: { code?: string; param?: string } = {}) {
    super(message);
    this.status = status;
    this.code = detail.code ?? null;
    this.param = detail.param ?? null;
  }
}

/** Refuses a member. */
export function refuse(param: string, rule: string): DemoRequestError {
  return new DemoRequestError(400, `${param}: ${rule}`, { param });
}

/** Parses a body. @throws DemoRequestError where it is no object */
export function readBody(json: string): JsonRecord {
  const body = parseRecord(json);
  if (body === undefined) throw new DemoRequestError(400, "The body must be a JSON object");
  return body;
}

/** Refuses other models than these. @throws DemoRequestError */
export function requireModel({ model }: JsonRecord, names: readonly string[]): string {
  if (typeof model === "string" && names.includes(model)) return model;
  throw new DemoRequestError(
    400,
    `The demo model \`${String(model)}\` cannot do this: use ${names.join(" or ")}`,
    { code: "model_not_supported", param: "model" },
  );
}

/** Refuses members that the demo vendor does not have, so that nobody believes they did something. @throws DemoRequestError */
export function requireKnown(body: JsonRecord, known: ReadonlySet<string>): void {
  for (const [name, value] of Object.entries(body)) {
    if (value == null || known.has(name)) continue;
    const meant = nearest(name, [...known]);
    const advice = meant === undefined ? "leave it out" : `did you mean "${meant}"?`;
    const text = `${name}: the demo vendor does not support it; ${advice}`;
    throw new DemoRequestError(400, text, { code: "unsupported_parameter", param: name });
  }
}

/** A range of numbers. */
interface Range {
  readonly least: number;
  readonly most: number;
  readonly isWhole?: boolean;
}

/** A number; `undefined` where it is absent or null. @throws DemoRequestError */
export function numberMember(
  body: JsonRecord,
  name: string,
  { least, most, isWhole = false }: Range,
): number | undefined {
  const value = body[name];
  if (value == null) return undefined;
  const isNumber = typeof value === "number" && value >= least && value <= most;
  if (isNumber && (!isWhole || Number.isInteger(value))) return value;
  throw refuse(name, `expected a ${isWhole ? "whole " : ""}number from ${least} to ${most}`);
}

/** A number of a form. @throws DemoRequestError */
export function numberField(fields: JsonRecord, name: string, range: Range): number | undefined {
  const { [name]: value } = fields;
  const isNumber = typeof value === "string" && value.trim() !== "";
  return numberMember({ [name]: isNumber ? Number(value) : value }, name, range);
}

/** A flag of a form, or of JSON. @throws DemoRequestError */
export function flagField(fields: JsonRecord, name: string): boolean {
  const { [name]: value } = fields;
  const isWord = value === "true" || value === "false";
  return flagMember({ [name]: isWord ? value === "true" : value }, name);
}

/** A flag; false where it is absent or null. @throws DemoRequestError */
export function flagMember(body: JsonRecord, name: string): boolean {
  const value = body[name] ?? false;
  if (typeof value === "boolean") return value;
  throw refuse(name, "expected true or false");
}

/** An object; `undefined` where it is absent or null. @throws DemoRequestError */
export function recordMember(body: JsonRecord, name: string): JsonRecord | undefined {
  const value = body[name];
  if (value == null) return undefined;
  if (isRecord(value)) return value;
  throw refuse(name, "expected an object");
}

/** Answers a request, or refuses it. */
export async function answered(
  answer: () => VendorReply | Promise<VendorReply>,
): Promise<VendorReply> {
  try {
    return await answer();
  } catch (error) {
    if (!(error instanceof DemoRequestError)) throw error;
    const { message, param, code, status } = error;
    return jsonReply({ error: { message, type: "invalid_request_error", param, code } }, status);
  }
}
