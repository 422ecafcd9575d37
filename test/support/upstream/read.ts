/** Reading JSON that has passed a shape, for the simulations. */
import { isObject } from "./exchange.ts";
import { describeBytes } from "./scenario.ts";

/** A JSON object. */
export type Json = Record<string, unknown>;

/** The objects in what should be an array of them. */
export function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** An object, or an empty one. */
export function object(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** A string, or an empty one. */
export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The text of content that is a string, or parts with a member `text`. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return objects(content)
    .map((part) => string(part["text"]))
    .join("");
}

/**
 * Returns the last text of content. Earlier texts of a message are no instruction: agents put
 * context before the user's words, and vendors with alternating turns get several turns of the user
 * as one.
 */
export function lastTextOf(content: unknown): string {
  if (typeof content === "string") return content;
  return (
    objects(content)
      .map((part) => string(part["text"]))
      .findLast((text) => text !== "") ?? ""
  );
}

/** All members but these. */
export function without(body: Json, names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

/** `mime sha256` of a data URL; the URL itself if it is another. */
export function describeUrl(url: string): string {
  const data = /^data:([^;,]+);base64,(.*)$/s.exec(url);
  return data === null ? url : describeBytes(data[1] ?? "", Buffer.from(data[2] ?? "", "base64"));
}
