/** Bodies that are written, with the outline that guards and holds read. */
import { writeJson } from "./json-tree.ts";
import { type Outline, scanObject } from "./outline.ts";

/** A written body, one JSON object. */
export interface JsonBody {
  readonly body: Buffer;
  /** Its outline, made once. */
  readonly outline: () => Outline;
}

/** Writes a value, which may contain JsonText. */
export function jsonBody(value: object): JsonBody {
  const body = Buffer.from(writeJson(value));
  let outline: Outline | undefined;
  return { body, outline: () => (outline ??= scanObject(body)) };
}
