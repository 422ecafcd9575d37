/**
 * The parts of a contract as a flat list, in which each has the properties that clients depend on.
 */
import {
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import {
  Access,
  AccessSchema,
  access,
  type Deprecation,
  DialectSchema,
  MediaOperationSchema,
  type Route,
  route,
} from "../../gen/uas/http/v1/http_pb.ts";
import type { Contract } from "./contract.ts";
import { deprecationOf, routeDeprecation } from "./deprecation.ts";
import { ruleFacts } from "./rules.ts";

/** The kinds of elements, in the order in which changes are listed. */
export const elementKinds = [
  "REST path",
  "service",
  "RPC",
  "message",
  "field",
  "enum",
  "enum value",
  "option",
  "package",
] as const;

/** Kind of an element. */
export type ElementKind = (typeof elementKinds)[number];

/** A part of a contract. */
export interface Element {
  readonly kind: ElementKind;
  /** The full name, such as `uas.key.v1.Key.name`; of REST paths method, path and condition. */
  readonly name: string;
  /** The element that comes and goes with it: the message of a field, the RPC of its request. */
  readonly owner: string | undefined;
  /** Properties that clients depend on, by name. */
  readonly facts: ReadonlyMap<string, string>;
  /** The comment, as one line. */
  readonly comment: string;
  /** The announcement of its removal. Undefined if it stays. */
  readonly deprecation: Deprecation | undefined;
  /** The file that declares it, such as `uas/key/v1/key.proto`. */
  readonly file: string;
}

/** Lists the elements of a contract, by name. */
export function elementsOf({ files, comments }: Contract): ReadonlyMap<string, Element> {
  const owners = ownersOfMessages(files);
  const found: Omit<Element, "comment">[] = files.flatMap((file) => [
    packageElement(file),
    ...file.services.flatMap(serviceElements),
    ...file.messages.flatMap((message) => messageElements(message, owners)),
    ...file.enums.flatMap((each) => enumElements(each)),
    ...file.extensions.map(extensionElement),
  ]);
  return new Map(
    found.map((each) => [each.name, { ...each, comment: comments.get(each.name) ?? "" }]),
  );
}

type Found = Omit<Element, "comment">;

/** The names that generated code has for a package. */
function packageElement({ proto, name }: DescFile): Found {
  const { goPackage, javaPackage, csharpNamespace } = proto.options ?? {};
  const facts = {
    "name in Go": goPackage ?? "",
    "name in Java": javaPackage ?? "",
    "name in C#": csharpNamespace ?? "",
  };
  const file = `${name}.proto`;
  return {
    kind: "package",
    name: proto.package,
    owner: undefined,
    facts: new Map(Object.entries(facts)),
    deprecation: undefined,
    file,
  };
}

function serviceElements(service: DescService): Found[] {
  const file = fileOf(service);
  const own: Found = {
    kind: "service",
    name: service.typeName,
    owner: undefined,
    facts: new Map(),
    deprecation: undefined,
    file,
  };
  return [own, ...service.methods.flatMap(methodElements)];
}

function methodElements(method: DescMethod): Found[] {
  const file = fileOf(method.parent);
  const name = methodName(method);
  const facts = {
    request: method.input.typeName,
    response: method.output.typeName,
    kind: method.methodKind.replace("_", " "),
    "side effects": idempotencyWords[method.idempotency],
    access: Access[accessName(method)] === 0 ? "" : accessName(method),
  };
  const own: Found = {
    kind: "RPC",
    name,
    owner: method.parent.typeName,
    facts: new Map(Object.entries(facts)),
    deprecation: deprecationOf(method),
    file,
  };
  const routes = hasOption(method, route) ? getOption(method, route) : [];
  return [own, ...routes.map((each): Found => routeElement(method, each))];
}

const idempotencyWords = ["may have side effects", "none", "idempotent"] as const;

function accessName(method: DescMethod): keyof typeof Access {
  const value = hasOption(method, access) ? getOption(method, access) : Access.UNSPECIFIED;
  return (AccessSchema.value[value]?.localName ?? "UNSPECIFIED") as keyof typeof Access;
}

/** The full name of an RPC, such as `uas.key.v1.KeyService.CreateKey`. */
export function methodName({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}

/** The name of a REST path: `GET /v1/models (with the header anthropic-version)`. */
export function routeName({ method, path, whenHeader, whenQuery }: Route): string {
  const header = whenHeader === "" ? "" : ` (with the header ${whenHeader})`;
  const query = whenQuery === "" ? "" : ` (with ?${whenQuery}=true)`;
  return `${method} ${path}${header}${query}`;
}

function routeElement(method: DescMethod, each: Route): Found {
  const facts = {
    RPC: methodName(method),
    style: DialectSchema.value[each.dialect]?.localName ?? String(each.dialect),
    "request id": each.omitRequestId ? "left out" : "repeated",
    stream: each.alwaysStream ? "always" : "as the body says",
    "names of the platform": each.platformAliases ? "accepted" : "refused",
    operation:
      each.mediaOperation === 0
        ? ""
        : (MediaOperationSchema.value[each.mediaOperation]?.localName ?? ""),
    compaction: each.compact ? "yes" : "no",
    WebSocket: each.webSocket ? "yes" : "no",
  };
  return {
    kind: "REST path",
    name: routeName(each),
    owner: undefined,
    facts: new Map(Object.entries(facts)),
    deprecation: routeDeprecation(method, each),
    file: fileOf(method.parent),
  };
}

function messageElements(
  message: DescMessage,
  owners: ReadonlyMap<string, string>,
  owner = owners.get(message.typeName),
): Found[] {
  if (message.proto.options?.mapEntry) return [];
  const own: Found = {
    kind: "message",
    name: message.typeName,
    owner,
    facts: new Map(),
    deprecation: undefined,
    file: fileOf(message),
  };
  return [
    own,
    ...message.fields.map(fieldElement),
    ...message.nestedMessages.flatMap((inner) => messageElements(inner, owners, message.typeName)),
    ...message.nestedEnums.flatMap((inner) => enumElements(inner, message.typeName)),
  ];
}

/** The full name of a field. */
export function fieldName({ parent, name }: DescField): string {
  return `${parent.typeName}.${name}`;
}

function fieldElement(field: DescField): Found {
  const facts = new Map([
    ["type", typeText(field)],
    ["number", String(field.number)],
    ["name in JSON", field.jsonName],
    ["alternative to", field.oneof?.name ?? ""],
    ...ruleFacts(field),
  ]);
  return {
    kind: "field",
    name: fieldName(field),
    owner: field.parent.typeName,
    facts,
    deprecation: deprecationOf(field),
    file: fileOf(field.parent),
  };
}

function enumElements(each: DescEnum, owner?: string): Found[] {
  const file = fileOf(each);
  const own: Found = {
    kind: "enum",
    name: each.typeName,
    owner,
    facts: new Map(),
    deprecation: undefined,
    file,
  };
  const values = each.values.map((value): Found => {
    return {
      kind: "enum value",
      name: `${each.typeName}.${value.name}`,
      owner: each.typeName,
      facts: new Map([["number", String(value.number)]]),
      deprecation: deprecationOf(value),
      file,
    };
  });
  return [own, ...values];
}

function extensionElement(extension: DescExtension): Found {
  return {
    kind: "option",
    name: extension.typeName,
    owner: undefined,
    facts: new Map([
      ["type", typeText(extension)],
      ["number", String(extension.number)],
      ["for", extension.extendee.typeName],
    ]),
    deprecation: undefined,
    file: fileOf(extension),
  };
}

/** The type as the contract spells it: `repeated uas.key.v1.Key`. */
function typeText(field: DescField | DescExtension): string {
  switch (field.fieldKind) {
    case "list":
      return `repeated ${valueText(field)}`;
    case "map":
      return `map<${scalarText(field.mapKey)}, ${valueText(field)}>`;
    case "scalar":
    case "enum": {
      const isOptional = field.presence === Presence.EXPLICIT && field.oneof === undefined;
      return `${isOptional ? "optional " : ""}${valueText(field)}`;
    }
    case "message":
    default:
      return valueText(field);
  }
}

function valueText(field: DescField | DescExtension): string {
  const named = field.message?.typeName ?? field.enum?.typeName;
  return named ?? scalarText(field.scalar);
}

function scalarText(scalar: ScalarType | undefined): string {
  const name = Object.entries(ScalarType).find(([, value]) => value === scalar)?.[0];
  return (name ?? "?").toLowerCase();
}

function fileOf({ file }: DescMessage | DescEnum | DescService | DescExtension): string {
  return `${file.name}.proto`;
}

/** The RPC that alone uses a message as its request or response: they come and go together. */
function ownersOfMessages(files: readonly DescFile[]): ReadonlyMap<string, string> {
  const users = new Map<string, Set<string>>();
  for (const method of files.flatMap(({ services }) => services).flatMap((each) => each.methods)) {
    for (const { typeName } of [method.input, method.output]) {
      users.set(typeName, (users.get(typeName) ?? new Set()).add(methodName(method)));
    }
  }
  const single = [...users].flatMap(([message, names]) =>
    names.size === 1 ? [[message, [...names][0] ?? ""] as const] : [],
  );
  return new Map(single);
}
