/** Builders of JSON Schema members, shared by the parameter objects of all task types. */
import type { JsonObject } from "@bufbuild/protobuf";

/** The members of a parameter object. */
export type Members = Readonly<Record<string, JsonObject>>;

/** The form of a parameter object. */
export interface ParamsForm {
  readonly title: string;
  readonly members: Members;
  /** At least one member of each list is required. */
  readonly needs: readonly (readonly string[])[];
  /** Whether it has no `extra`. Default false. */
  readonly hasNoExtra?: boolean;
}

/** A text of at least one character. */
export function text(description: string, maxLength: number): JsonObject {
  return { type: "string", description, minLength: 1, maxLength };
}

/** A whole number. */
export function whole(description: string, minimum: number, maximum: number): JsonObject {
  return { type: "integer", description, minimum, maximum };
}

/** A number. */
export function number(description: string, minimum: number, maximum: number): JsonObject {
  return { type: "number", description, minimum, maximum };
}

/** Yes or no. */
export function flag(description: string): JsonObject {
  return { type: "boolean", description };
}

/** One of several words. */
export function word(description: string, words: readonly string[]): JsonObject {
  return { type: "string", description, enum: [...words] };
}

/** A text that matches a pattern. */
export function formed(description: string, pattern: string, maxLength = 32): JsonObject {
  return { type: "string", description, pattern, maxLength };
}

/**
 * A file that the customer names: an https address that the public internet reaches, or the file
 * itself as a `data:` address. The format `uri` is checked as exactly that: see check.ts.
 */
export function file(description: string): JsonObject {
  return { type: "string", format: "uri", description: `${description}: https:// or data:` };
}

/** Several files. */
export function files(description: string, maxItems: number): JsonObject {
  return { type: "array", description, items: file("One of them"), minItems: 1, maxItems };
}

/** Members of several task types. */
export const common: Members = {
  seed: whole("Makes results repeatable, if the vendor supports it", -1, 2 ** 53 - 1),
  watermark: flag("Whether the vendor marks the result visibly"),
  promptExtend: flag("Whether the vendor may rewrite the prompt"),
};

/** Dimensions of images and videos. */
export const shape: Members = {
  size: formed("Width and height in pixels, such as 1024x1024", "^(?:auto|\\d{2,5}[x*×]\\d{2,5})$"),
  aspectRatio: formed("Width to height, such as 16:9", "^(?:auto|\\d{1,3}:\\d{1,3})$"),
};

/**
 * The JSON Schema of a form. It is closed: unknown members are refused, and `extra`, which is sent
 * to the vendor unchanged, may not repeat a known one.
 */
export function paramsSchema({
  title,
  members,
  needs,
  hasNoExtra = false,
}: ParamsForm): JsonObject {
  const names = Object.keys(members).flatMap((name) => [name, snakeCase(name)]);
  const single = needs.filter((need) => need.length === 1).flat();
  const several = needs
    .filter((need) => need.length > 1)
    .map((need) => ({ anyOf: need.map(requires) }));
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    type: "object",
    properties: {
      ...members,
      ...(!hasNoExtra && {
        extra: {
          type: "object",
          description: "Further parameters by the vendor's names, passed on unchanged",
          propertyNames: { not: { enum: [...new Set(names)] } },
          maxProperties: 64,
        },
      }),
    },
    additionalProperties: false,
    ...(single.length > 0 && { required: single }),
    ...(several.length > 0 && { allOf: several }),
  };
}

/** Requires one member. Strict validators need its declaration next to the requirement. */
function requires(name: string): JsonObject {
  return { type: "object", properties: { [name]: true }, required: [name] };
}

/** `negativePrompt` as `negative_prompt`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
