/** The form of the reply, for a vendor. */
import {
  type ResponseFormat,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { isRecord, type JsonRecord, parseRecord } from "../json.ts";
import { type JsonBranch, JsonText } from "./json-text.ts";
import { type RequestWriter, refused } from "./request-writer.ts";

/** What is said to the model where any JSON object is asked for: the style has no such form. */
const jsonLine =
  "Answer with one valid JSON object and nothing else: no text around it, no code fence.";

/** What the style knows of a form. */
export interface EncodedFormat {
  /** `output_config.format`; `undefined`: not said. */
  readonly format: JsonBranch | undefined;
  /** A line for the system text. Empty: none. */
  readonly line: string;
}

/** The form of the reply. @throws GatewayError INVALID_REQUEST for a schema that is none */
export function encodeFormat(
  format: ResponseFormat | undefined,
  writer: RequestWriter,
): EncodedFormat {
  switch (format?.type) {
    case ResponseFormatType.JSON_OBJECT:
      return { format: undefined, line: jsonLine };
    case ResponseFormatType.JSON_SCHEMA: {
      // A schema's name has no effect on the reply, so that nothing is lost with it.
      if (format.description !== "") writer.drop("response_format.description");
      const schema = new JsonText(closedSchema(format.schemaJson, writer));
      return { format: { type: "json_schema", schema }, line: "" };
    }
    case ResponseFormatType.TEXT:
    case ResponseFormatType.UNSPECIFIED:
    case undefined:
    default:
      return { format: undefined, line: "" };
  }
}

/** The vendor refuses schemas of objects that do not say `additionalProperties: false`. */
function closedSchema(json: string, writer: RequestWriter): string {
  const schema = parseRecord(json);
  if (schema === undefined) {
    throw refused("The schema of the response format must be a JSON object", "response_format");
  }
  if (writer.isOwn) return json;
  const closed = close(schema);
  return closed === schema ? json : JSON.stringify(closed);
}

/** The very value where nothing is missing in it. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(close);
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  if (!isRecord(value)) return value;
  const closed: Record<string, unknown> = {};
  let isChanged = false;
  for (const [name, member] of Object.entries(value)) {
    closed[name] = keptAsIs.has(name) ? member : close(member);
    if (closed[name] !== member) isChanged = true;
  }
  if (isOpenObject(value)) {
    closed["additionalProperties"] = false;
    isChanged = true;
  }
  return isChanged ? closed : value;
}

/** What is no schema but a value. */
const keptAsIs: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"]);

/** A property may be called `type`, too: only its word tells. */
function isOpenObject(value: JsonRecord): boolean {
  return value["type"] === "object" && !("additionalProperties" in value);
}
