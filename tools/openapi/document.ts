/**
 * The REST surface as documents, OpenAPI 3.1 and llms.txt, made from the contract and its route
 * options.
 */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Access, access, Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { RestRoute } from "../../src/edge/rest/route-table.ts";
import { routeDeprecation } from "../../src/contract/deprecation.ts";
import type { Comments } from "../../src/contract/comments.ts";
import { fieldSchema, isRequired, messageSchema } from "./message-schema.ts";
import { type JsonPart, replyContent, replySchemas } from "./replies.ts";

/** The documents of the REST surface. */
interface Documents {
  readonly openapi: JsonPart;
  readonly llms: string;
}

/** Makes both documents from the routes of the contract. */
export function createDocuments(all: readonly RestRoute[], comments: Comments): Documents {
  const routes = all.filter(({ route }) => !route.path.startsWith("/v1/v1/"));
  return { openapi: openapiDocument(routes, comments), llms: llmsText(routes, comments) };
}

const title = "UAS Gateway";
const summary = "One address and one prepaid balance for hosted AI models";

/** The OpenAPI 3.1 document. */
function openapiDocument(routes: readonly RestRoute[], comments: Comments): JsonPart {
  const paths: Record<string, Record<string, JsonPart>> = {};
  for (const route of routes.filter((each) => !each.route.webSocket)) {
    const operations = (paths[openPath(route)] ??= {});
    const verb = route.route.method.toLowerCase();
    const first = operations[verb];
    operations[verb] =
      first === undefined ? operation(route, comments) : withCondition(first, route);
  }
  return {
    openapi: "3.1.0",
    info: { title, version: "1", summary, description: about },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { apiKey: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "The API key" },
        apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
      },
      schemas: { Error: errorSchema, MessagesError: messagesErrorSchema, ...replySchemas },
    },
  };
}

const about =
  "Bodies of model calls are those of OpenAI's and Anthropic's APIs; their SDKs work with this address followed by " +
  "/v1 as their base. Vendors' own APIs are served below the prefixes that /llms.txt lists, as their documentation " +
  "describes them.";

/** The path in OpenAPI's syntax, which has no form for a field that may contain slashes. */
function openPath({ route }: RestRoute): string {
  return route.path.replace(/=\*\*\}/g, "}");
}

/** Adds the header or parameter that selects another form on the same path. */
function withCondition(first: JsonPart, { whenHeader, whenQuery }: RestRoute): JsonPart {
  const parameters = first["parameters"] as readonly JsonPart[];
  const [name, place] = whenHeader === undefined ? [whenQuery, "query"] : [whenHeader, "header"];
  const description =
    place === "header"
      ? "If it is sent, reply and errors have the form of Anthropic's API"
      : "`true`: the reply is an event stream";
  const schema = { type: "string" };
  return { ...first, parameters: [...parameters, { name, in: place, description, schema }] };
}

function operation(each: RestRoute, comments: Comments): JsonPart {
  const { method, route } = each;
  const description = commentOn(method, comments);
  const announced = routeDeprecation(method, route);
  const isOpen = getOption(method, access) === Access.PUBLIC;
  return {
    operationId: operationId(each),
    tags: [method.parent.name.replace(/Service$/, "")],
    summary: summaryOf(each, comments),
    description,
    ...(announced && { deprecated: true, "x-sunset": announced.sunsetDate }),
    ...(isOpen && { security: [] }),
    parameters: [
      ...parametersOf(each, comments),
      ...(route.omitRequestId ? [] : [requestIdParameter]),
    ],
    ...(route.method === "POST" && requestBodyOf(each, comments)),
    responses: { "200": replyOf(each, comments), default: errorReply(each) },
  };
}

function operationId({ method, route }: RestRoute): string {
  const words = route.path.match(/[a-z0-9]+/g) ?? [];
  return [method.localName, ...words].join("_");
}

/** Summarises a route in one sentence without a full stop. */
function summaryOf({ route, method }: RestRoute, comments: Comments): string {
  return route.summary || firstSentence(commentOn(method, comments));
}

function commentOn(method: DescMethod, comments: Comments): string {
  return comments.get(`${method.parent.typeName}.${method.name}`) ?? "";
}

function firstSentence(text: string): string {
  return /^.*?[.:](?= |$)/.exec(text)?.[0].slice(0, -1) ?? text;
}

const requestIdParameter: JsonPart = {
  name: "x-request-id",
  in: "header",
  description: "Your id of the request, 1 to 256 visible ASCII characters. The reply repeats it",
  schema: { type: "string", maxLength: 256 },
};

/** Returns the fields of the path, and for reads those of the query. */
function parametersOf(each: RestRoute, comments: Comments): JsonPart[] {
  const { method, route, dialect } = each;
  return method.input.fields.flatMap((field): JsonPart[] => {
    const { description, ...schema } = fieldSchema(field, comments);
    const told = { ...(description !== undefined && { description }), schema };
    if (isInPath(each, field.name)) {
      return [{ name: field.name, in: "path", required: true, ...told }];
    }
    if (route.method !== "GET" || field.fieldKind === "message") return [];
    const name = dialect === Dialect.PLATFORM ? field.jsonName : field.name;
    return [{ name, in: "query", ...(isRequired(field) && { required: true }), ...told }];
  });
}

function isInPath({ route }: RestRoute, name: string): boolean {
  return route.path.includes(`{${name}}`) || route.path.includes(`{${name}=`);
}

/**
 * Bodies in a wire style, which the contract carries as bytes: their required members, and where
 * they are described.
 */
const styleBodies: ReadonlyMap<string, { readonly required: string[]; readonly docs: string }> =
  new Map([
    [
      "exchange/1",
      {
        required: ["model", "messages"],
        docs: "https://platform.openai.com/docs/api-reference/chat/create",
      },
    ],
    [
      "exchange/3",
      {
        required: ["model", "input"],
        docs: "https://platform.openai.com/docs/api-reference/responses/create",
      },
    ],
    [
      "exchange/4",
      {
        required: ["model", "messages", "max_tokens"],
        docs: "https://platform.claude.com/docs/en/api/messages",
      },
    ],
    [
      "countTokens/3",
      {
        required: ["model", "input"],
        docs: "https://platform.openai.com/docs/api-reference/responses/input-tokens",
      },
    ],
    [
      "countTokens/4",
      {
        required: ["model", "messages"],
        docs: "https://platform.claude.com/docs/en/api/messages-count-tokens",
      },
    ],
    [
      "embed/1",
      {
        required: ["model", "input"],
        docs: "https://platform.openai.com/docs/api-reference/embeddings/create",
      },
    ],
    [
      "moderate/1",
      {
        required: ["input"],
        docs: "https://platform.openai.com/docs/api-reference/moderations/create",
      },
    ],
    [
      "exchangeMedia/1",
      { required: ["model"], docs: "https://platform.openai.com/docs/api-reference" },
    ],
  ]);

/** Whether the contract carries the body as bytes. */
function isWire({ input }: DescMethod): boolean {
  return input.fields.some(({ name }) => name === "body");
}

function requestBodyOf(each: RestRoute, comments: Comments): JsonPart {
  const { method, dialect, route } = each;
  if (!isWire(method)) {
    const fields = method.input.fields.filter(({ name }) => !isInPath(each, name));
    if (fields.length === 0) return {};
    return { requestBody: jsonBody(messageSchema(fields, comments)) };
  }
  const style = styleBodies.get(`${method.localName}/${dialect}`);
  const required = route.platformAliases ? [] : (style?.required ?? ["model"]);
  const schema = {
    type: "object",
    properties: {
      model: { type: "string", description: "One of those that GET /v1/models lists" },
      ...(canStream(each) && {
        stream: { type: "boolean", description: "Whether to stream the reply" },
      }),
    },
    ...(required.length > 0 && { required }),
    ...(style && { externalDocs: { url: style.docs } }),
  };
  return { requestBody: jsonBody(schema) };
}

function jsonBody(schema: JsonPart): JsonPart {
  return { required: true, content: { "application/json": { schema } } };
}

/** Whether the reply may be an event stream because the body requests it. */
function canStream({ method, route }: RestRoute): boolean {
  if (route.compact) return false;
  return isWire(method) && method.methodKind === "server_streaming" && method.localName !== "embed";
}

function replyOf(each: RestRoute, comments: Comments): JsonPart {
  const { method, route } = each;
  const description = comments.get(method.output.typeName) || "The reply";
  const json = replyContent(each);
  const events = { "text/event-stream": { schema: { type: "string" } } };
  const content = { ...(!route.alwaysStream && json), ...(canStream(each) && events) };
  return { description, content };
}

function errorReply({ dialect }: RestRoute): JsonPart {
  const name = dialect === Dialect.MESSAGES ? "MessagesError" : "Error";
  const schema = { $ref: `#/components/schemas/${name}` };
  return {
    description: "An error: its code is stable, its message tells what to do",
    content: { "application/json": { schema } },
  };
}

const errorSchema: JsonPart = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type", "code", "param"],
      properties: {
        message: { type: "string" },
        type: { type: "string" },
        code: { type: "string" },
        param: { type: ["string", "null"], description: "The member at fault" },
      },
    },
  },
};

const messagesErrorSchema: JsonPart = {
  type: "object",
  required: ["type", "error"],
  properties: {
    type: { const: "error" },
    error: {
      type: "object",
      required: ["type", "message"],
      properties: { type: { type: "string" }, message: { type: "string" } },
    },
    request_id: { type: ["string", "null"] },
  },
};

/** The document for language models that write code against the gateway: https://llmstxt.org. */
function llmsText(routes: readonly RestRoute[], comments: Comments): string {
  const lines = routes.map((each) => {
    const { route } = each;
    const header = route.whenHeader === "" ? "" : ` (with the header ${route.whenHeader})`;
    const condition = route.webSocket ? " (a WebSocket, one message per request)" : header;
    return `- \`${route.method} ${openPath(each)}\`${condition}: ${summaryOf(each, comments)}`;
  });
  return [
    `# ${title}`,
    `> ${summary}. ${about}`,
    "Send the API key as `Authorization: Bearer KEY` or `x-api-key: KEY`. `GET /v1/models` lists the models. Anthropic's SDK takes the address itself as its base, without /v1.",
    `## Endpoints\n\n${lines.join("\n")}`,
    "## Documents\n\n- [OpenAPI](/openapi.json): every endpoint with its parameters and errors",
    "",
  ].join("\n\n");
}
