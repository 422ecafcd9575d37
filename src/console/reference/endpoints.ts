/** Reads the gateway's OpenAPI document into the rows of the page. */

/** One endpoint. */
export interface Endpoint {
  readonly id: string;
  /** The area of the contract, the heading that it stands under. */
  readonly area: string;
  readonly verb: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly Member[];
  /** The members of the body. */
  readonly members: readonly Member[];
  /** Where bodies of another API's form are described; `undefined`: here. */
  readonly docs: string | undefined;
}

/** A parameter, or a member of the body. */
export interface Member {
  readonly name: string;
  /** `path`, `query` or `header`; empty for members of the body. */
  readonly place: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly externalDocs?: { readonly url: string };
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> };
}

interface OpenapiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** The endpoints of a document that this gateway made, in its order. */
export function endpointsOf(document: unknown): Endpoint[] {
  const { paths } = document as OpenapiDocument;
  return Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => endpoint(path, verb, operation)),
  );
}

function endpoint(path: string, verb: string, operation: Operation): Endpoint {
  const { operationId, tags, summary, description, parameters, requestBody } = operation;
  const schema = requestBody?.content["application/json"]?.schema ?? {};
  const { properties = {}, required = [], externalDocs } = schema;
  return {
    id: operationId,
    area: tags[0] ?? "",
    verb: verb.toUpperCase(),
    path,
    summary,
    description,
    parameters: parameters.map((each) => ({
      name: each.name,
      place: each.in,
      type: typeText(each.schema),
      isRequired: each.required === true,
      description: each.description ?? "",
    })),
    members: Object.entries(properties).map(([name, each]) => ({
      name,
      place: "",
      type: typeText(each),
      isRequired: required.includes(name),
      description: each.description ?? "",
    })),
    docs: externalDocs?.url,
  };
}

function typeText({ type, enum: words }: Schema): string {
  if (words !== undefined) return words.join(" | ");
  return typeof type === "string" ? type : (type ?? []).join(" | ");
}
