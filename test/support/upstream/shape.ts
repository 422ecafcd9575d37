/** Shapes of JSON for the strict simulations: every member is known, or the request is refused. */
import { isObject } from "./exchange.ts";

/** Position in a body. */
export type Path = ReadonlyArray<string | number>;

/** Why a body does not fit. Each style says it in its own words. */
export class ShapeError extends Error {
  readonly kind: "unknown" | "missing" | "invalid";
  readonly path: Path;
  /** The vendor's stable code, if the rule has one. */
  readonly code: string | undefined;

  constructor(kind: ShapeError["kind"], path: Path, message = "", code?: string) {
    super(message);
    this.kind = kind;
    this.path = path;
    this.code = code;
  }
}

/** Throws {@link ShapeError} where the value does not fit. */
export type Shape = (value: unknown, path: Path) => void;

/** Fails a rule that is about more than a shape. */
export function invalid(path: Path, message: string, code?: string): never {
  throw new ShapeError("invalid", path, message, code);
}

/** An object with these members and no others; those whose name ends in `!` must be there. */
export function record(members: Readonly<Record<string, Shape>>): Shape {
  const shapes = new Map(
    Object.entries(members).map(([name, shape]) => [name.replace(/!$/, ""), shape]),
  );
  const required = Object.keys(members).flatMap((name) =>
    name.endsWith("!") ? [name.slice(0, -1)] : [],
  );
  return (value, path) => {
    if (!isObject(value)) invalid(path, "expected an object");
    for (const name of required) {
      if (value[name] === undefined) throw new ShapeError("missing", [...path, name]);
    }
    for (const [name, member] of Object.entries(value)) {
      const shape = shapes.get(name);
      if (shape === undefined) throw new ShapeError("unknown", [...path, name]);
      shape(member, [...path, name]);
    }
  };
}

/** An object whose member `tag` says which of the shapes it has. */
export function tagged(tag: string, variants: Readonly<Record<string, Shape>>): Shape {
  return (value, path) => {
    if (!isObject(value)) invalid(path, "expected an object");
    if (value[tag] === undefined) throw new ShapeError("missing", [...path, tag]);
    const name = value[tag];
    const shape =
      typeof name === "string" && Object.hasOwn(variants, name) ? variants[name] : undefined;
    if (shape === undefined) {
      const supported = Object.keys(variants)
        .map((variant) => `'${variant}'`)
        .join(", ");
      invalid(
        [...path, tag],
        `Invalid value: ${JSON.stringify(value[tag])}. Supported values are: ${supported}.`,
        "invalid_value",
      );
    }
    shape(value, path);
  };
}

/** A string. */
export function text(limits: { min?: number; max?: number; pattern?: RegExp } = {}): Shape {
  const { min = 0, max = Infinity, pattern } = limits;
  return (value, path) => {
    if (typeof value !== "string") invalid(path, "expected a string", "invalid_type");
    if (value.length < min) invalid(path, "string too short", "empty_string");
    if (value.length > max) {
      invalid(
        path,
        `string too long. Expected a string with maximum length ${max}, but got a string with length ${value.length} instead.`,
        "string_above_max_length",
      );
    }
    if (pattern && !pattern.test(value)) {
      invalid(path, `string does not match pattern '${pattern.source}'`, "invalid_value");
    }
  };
}

/** A number within limits, both inclusive. */
export function number(min: number, max: number): Shape {
  return (value, path) => {
    if (typeof value !== "number") invalid(path, "expected a number", "invalid_type");
    if (value < min) invalid(path, `Expected a value >= ${min}, but got ${value} instead.`);
    if (value > max) invalid(path, `Expected a value <= ${max}, but got ${value} instead.`);
  };
}

/** A whole number within limits, both inclusive. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Shape {
  const inLimits = number(min, max);
  return (value, path) => {
    if (!Number.isInteger(value)) invalid(path, "expected an integer", "invalid_type");
    inLimits(value, path);
  };
}

/** true or false. */
export const flag: Shape = (value, path) => {
  if (typeof value !== "boolean") invalid(path, "expected a boolean", "invalid_type");
};

/** One of these words. */
export function words(...allowed: readonly string[]): Shape {
  return (value, path) => {
    if (!allowed.includes(value as string)) {
      invalid(
        path,
        `Invalid value: ${JSON.stringify(value)}. Supported values are: ${allowed.join(", ")}.`,
      );
    }
  };
}

/** An array. */
export function list(shape: Shape, { min = 0, max = Infinity } = {}): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) invalid(path, "expected an array", "invalid_type");
    if (value.length < min) invalid(path, "empty array", "empty_array");
    if (value.length > max) {
      invalid(
        path,
        `array too long. Expected an array with maximum length ${max}, but got an array with length ${value.length} instead.`,
        "array_above_max_length",
      );
    }
    for (const [at, item] of value.entries()) shape(item, [...path, at]);
  };
}

/** A string, an array or an object, each in its own shape. */
export function either(shapes: { string?: Shape; array?: Shape; object?: Shape }): Shape {
  return (value, path) => {
    const kind = typeof value === "string" ? "string" : Array.isArray(value) ? "array" : "object";
    const shape = shapes[kind];
    if (shape === undefined || value === null || typeof value === "number") {
      invalid(path, `expected one of ${Object.keys(shapes).join(", ")}`, "invalid_type");
    }
    shape(value, path);
  };
}

/** The shape, or null. */
export function nullable(shape: Shape): Shape {
  return (value, path) => {
    if (value !== null) shape(value, path);
  };
}

/** An object with any members of that shape. */
export function map(shape: Shape): Shape {
  return (value, path) => {
    if (!isObject(value)) invalid(path, "expected an object", "invalid_type");
    for (const [name, member] of Object.entries(value)) shape(member, [...path, name]);
  };
}

/** Anything. */
export const anything: Shape = () => {};

/** `messages[0].content`, as OpenAI writes paths. */
export function bracketPath(path: Path): string {
  return path
    .map((step, at) => (typeof step === "number" ? `[${step}]` : at === 0 ? step : `.${step}`))
    .join("");
}

/** `messages.0.content`, as Anthropic writes paths. */
export function dotPath(path: Path): string {
  return path.join(".");
}
