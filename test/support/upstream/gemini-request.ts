/** Accepts the generateContent requests that Gemini accepts. */
import type { RecordedRequest } from "./exchange.ts";
import { type Json, object, objects, string } from "./read.ts";
import { unseal } from "./seal.ts";
import {
  anything,
  flag,
  integer,
  invalid,
  list,
  map,
  number,
  type Path,
  record,
  type Shape,
  text,
  words,
} from "./shape.ts";
import type { StyleError } from "./strict.ts";

const blob = record({
  "mimeType!": text({ pattern: /^[a-z]+\/[a-z0-9.+-]+$/ }),
  "data!": text({ min: 1, pattern: /^[A-Za-z0-9+/_-]+=*$/ }),
  displayName: text(),
});

const part = record({
  text: text(),
  thought: flag,
  thoughtSignature: text({ min: 1 }),
  inlineData: blob,
  fileData: record({ mimeType: text(), "fileUri!": text(), displayName: text() }),
  functionCall: record({ id: text(), "name!": text({ min: 1 }), args: map(anything) }),
  functionResponse: record({
    id: text(),
    "name!": text({ min: 1 }),
    "response!": map(anything),
    parts: list(record({ inlineData: blob, fileData: anything })),
    scheduling: anything,
    willContinue: flag,
  }),
  executableCode: anything,
  codeExecutionResult: anything,
  videoMetadata: anything,
  mediaResolution: anything,
});

const content = record({ role: words("user", "model"), "parts!": list(part, { min: 1 }) });

/** The subset of OpenAPI that `parameters` and `responseSchema` take: no additionalProperties. */
const schema: Shape = (value, path) => {
  record({
    type: text({ pattern: /^(string|number|integer|boolean|array|object|null|[A-Z_]+)$/ }),
    format: text(),
    title: text(),
    description: text(),
    nullable: flag,
    enum: list(text()),
    items: schema,
    minItems: anything,
    maxItems: anything,
    properties: map(schema),
    required: list(text()),
    minProperties: anything,
    maxProperties: anything,
    minimum: number(-Infinity, Infinity),
    maximum: number(-Infinity, Infinity),
    minLength: anything,
    maxLength: anything,
    pattern: text(),
    example: anything,
    anyOf: list(schema),
    propertyOrdering: list(text()),
    default: anything,
  })(value, path);
};

const declaration = record({
  "name!": text({ min: 1, max: 128, pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/ }),
  description: text(),
  parameters: schema,
  parametersJsonSchema: map(anything),
  response: schema,
  responseJsonSchema: map(anything),
  behavior: anything,
});

const thinkingConfig = record({
  includeThoughts: flag,
  thinkingBudget: integer(-1),
  thinkingLevel: words("MINIMAL", "LOW", "MEDIUM", "HIGH", "minimal", "low", "medium", "high"),
});

const generationConfig = record({
  stopSequences: list(text({ min: 1 }), { max: 5 }),
  responseMimeType: words("text/plain", "application/json", "text/x.enum"),
  responseSchema: schema,
  responseJsonSchema: map(anything),
  _responseJsonSchema: map(anything),
  responseModalities: list(text()),
  candidateCount: integer(1, 8),
  maxOutputTokens: integer(1),
  temperature: number(0, 2),
  topP: number(0, 1),
  topK: integer(1),
  seed: integer(-(2 ** 31), 2 ** 31 - 1),
  presencePenalty: number(-2, 2),
  frequencyPenalty: number(-2, 2),
  responseLogprobs: flag,
  logprobs: integer(0, 20),
  enableEnhancedCivicAnswers: flag,
  speechConfig: anything,
  thinkingConfig,
  imageConfig: anything,
  mediaResolution: anything,
});

const body = record({
  "contents!": list(content, { min: 1 }),
  systemInstruction: record({ role: text(), "parts!": list(part, { min: 1 }) }),
  tools: list(
    record({
      functionDeclarations: list(declaration, { min: 1, max: 128 }),
      googleSearch: anything,
      codeExecution: anything,
      urlContext: anything,
    }),
  ),
  toolConfig: record({
    functionCallingConfig: record({
      mode: words("AUTO", "ANY", "NONE", "VALIDATED"),
      allowedFunctionNames: list(text()),
    }),
    retrievalConfig: anything,
  }),
  safetySettings: list(anything),
  generationConfig,
  cachedContent: text(),
});

/** Signatures that Gemini takes if none was issued. */
const dummies = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/** Throws ShapeError for what Gemini does not accept. */
export function check({ json = {} }: RecordedRequest): StyleError | undefined {
  body(json, []);
  const contents = objects(json["contents"]);
  for (const [at, turn] of contents.entries()) {
    for (const [index, one] of objects(turn["parts"]).entries()) {
      checkPart(one, turn, ["contents", at, "parts", index]);
    }
    checkTurn(contents, at);
  }
  const { allowedFunctionNames: allowed, mode } = object(
    object(json["toolConfig"])["functionCallingConfig"],
  );
  if (allowed !== undefined && mode !== "ANY" && mode !== "VALIDATED") {
    invalid(
      ["toolConfig"],
      "Function calling config is set without function_calling_config.mode ANY.",
    );
  }
  const config = object(json["generationConfig"]);
  const hasSchema = config["responseSchema"] ?? config["responseJsonSchema"];
  if (hasSchema !== undefined && config["responseMimeType"] !== "application/json") {
    invalid(["generationConfig"], "response_schema needs response_mime_type application/json.");
  }
  if (config["responseSchema"] !== undefined && config["responseJsonSchema"] !== undefined) {
    invalid(
      ["generationConfig"],
      "only one of response_schema and response_json_schema may be set.",
    );
  }
  return undefined;
}

function checkPart(one: Json, turn: Json, path: Path): void {
  const kinds = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];
  const set = kinds.filter((kind) => one[kind] !== undefined);
  if (set.length > 1) invalid(path, "oneof field 'data' is already set.");
  if (set.length === 0)
    invalid(path, "required oneof field 'data' must have one initialized field.");
  if (one["functionCall"] !== undefined && turn["role"] !== "model") {
    invalid(path, "Please ensure that function call parts are in turns of the model.");
  }
  if (one["functionResponse"] !== undefined && turn["role"] === "model") {
    invalid(path, "Please ensure that function response parts are in turns of the user.");
  }
  const signature = string(one["thoughtSignature"]);
  if (signature !== "" && !dummies.includes(signature) && !unseal(signature, "gemini")) {
    invalid(path, "Thought signature is not valid.");
  }
}

/** A turn of calls comes after the user's, and the next one has a response for each. */
function checkTurn(contents: readonly Json[], at: number): void {
  const countOf = (turn: Json | undefined, kind: string): number =>
    objects(turn?.["parts"]).filter((one) => one[kind] !== undefined).length;
  const turn = contents[at];
  const calls = countOf(turn, "functionCall");
  const responses = countOf(turn, "functionResponse");
  if (calls > 0 && contents[at - 1]?.["role"] === undefined) {
    invalid(
      ["contents", at],
      "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    );
  }
  if (calls > 0 && countOf(contents[at + 1], "functionResponse") !== calls) {
    invalid(
      ["contents", at],
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    );
  }
  if (responses > 0 && countOf(contents[at - 1], "functionCall") !== responses) {
    invalid(
      ["contents", at],
      "Please ensure that function response turn comes immediately after a function call turn.",
    );
  }
}
