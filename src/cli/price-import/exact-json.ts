/** JSON whose numbers stay as they are written: no digit of a price is lost. */

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads JSON; each number becomes the text that it was written as.
 *
 * @throws SyntaxError where it is not JSON
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" ? (context?.source ?? String(value)) : value,
  );
}

/** The value where it is a JSON object. */
export function objectOf(value: unknown): JsonObject | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : undefined;
}

/** The entries of a JSON array; none where it is not one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value where it is text. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
