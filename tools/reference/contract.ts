/** The reference of RPCs, messages and enumerations: one page for each package of the contract. */
import {
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import type { FileDescriptorSet } from "@bufbuild/protobuf/wkt";
import { access, AccessSchema, permission, route } from "../../gen/uas/http/v1/http_pb.ts";
import { code, table } from "./table.ts";

/**
 * The numbers in the path of a location: of elements in a file, and of elements inside a message or
 * enumeration.
 */
const at = {
  message: 4,
  enum: 5,
  service: 6,
  inMessage: { field: 2, message: 3, enum: 4 },
  member: 2,
};

/** The comment of an element by its path in the file. */
type CommentAt = (...path: readonly number[]) => string;

/** Pages by file name. */
export function contractPages(contract: FileDescriptorSet): [string, string][] {
  const files = [...createFileRegistry(contract).files].filter(({ proto }) =>
    proto.package.startsWith("uas."),
  );
  const packages = [...new Set(files.map(({ proto }) => proto.package))].toSorted();
  return packages.map((name) => [
    fileOf(name),
    packagePage(
      name,
      files.filter(({ proto }) => proto.package === name),
    ),
  ]);
}

/** `uas.account.v1` is in `rpc-account.md`. */
function fileOf(name: string): string {
  return `rpc-${name.split(".")[1]}.md`;
}

function packagePage(name: string, files: readonly DescFile[]): string {
  const services = files.flatMap((file) =>
    file.services.map((_, index) => serviceText(file, index)),
  );
  const messages = files.flatMap((file) => {
    const comment = commentsOf(file);
    return file.messages.flatMap((message, index) =>
      messageTexts(message, comment, [at.message, index]),
    );
  });
  const enums = files.flatMap((file) => {
    const comment = commentsOf(file);
    return file.enums.map((each, index) => enumText(each, comment, [at.enum, index]));
  });
  const parts = [
    `# ${name}`,
    `Here you find every RPC, message and value of \`${name}\`. Generated from \`${folderOf(name)}\`.`,
    ...services,
    ...(messages.length > 0 ? ["## Messages", ...messages] : []),
    ...(enums.length > 0 ? ["## Enumerations", ...enums] : []),
  ];
  return parts.join("\n\n");
}

function folderOf(name: string): string {
  return `proto/${name.replaceAll(".", "/")}`;
}

function serviceText(file: DescFile, index: number): string {
  const service = file.services[index];
  if (service === undefined) throw new Error("no such service");
  const comment = commentsOf(file);
  const methods = service.methods.map((method, member) =>
    [
      `### ${service.name}.${method.name}`,
      signature(method),
      comment(at.service, index, at.member, member),
    ].join("\n\n"),
  );
  return [`## ${service.name}`, comment(at.service, index), ...methods].join("\n\n");
}

function signature(method: DescMethod): string {
  const { input, output, methodKind } = method;
  const own = method.parent.file.proto.package;
  const stream = (isStream: boolean): string => (isStream ? "stream of " : "");
  const sends = stream(methodKind === "client_streaming" || methodKind === "bidi_streaming");
  const replies = stream(methodKind === "server_streaming" || methodKind === "bidi_streaming");
  const caller = AccessSchema.value[getOption(method, access)]?.localName.toLowerCase() ?? "";
  const word = getOption(method, permission);
  const routes = hasOption(method, route) ? getOption(method, route) : [];
  const paths = [...new Set(routes.map((each) => code(`${each.method} ${each.path}`)))];
  const lines = [
    `- Request: ${sends}${typeLink(input, own)}. Response: ${replies}${typeLink(output, own)}.`,
    `- Access: ${code(caller)}.${word === "" ? "" : ` Permission: ${code(word)}.`}`,
    ...(paths.length > 0 ? [`- REST: ${paths.join(", ")}.`] : []),
  ];
  return lines.join("\n");
}

function messageTexts(message: DescMessage, comment: CommentAt, path: readonly number[]): string[] {
  const rows = message.fields.map((field, index) => [
    code(field.name),
    typeText(field, message.file.proto.package),
    (field.oneof === undefined ? "" : `One of ${code(field.oneof.name)}. `) +
      comment(...path, at.inMessage.field, index),
  ]);
  const fields = rows.length === 0 ? [] : [table(["field", "type", "meaning"], rows)];
  return [
    [`### ${localName(message)}`, comment(...path), ...fields].join("\n\n"),
    ...message.nestedMessages
      .filter(({ proto }) => proto.options?.mapEntry !== true)
      .flatMap((nested) =>
        messageTexts(nested, comment, [
          ...path,
          at.inMessage.message,
          message.proto.nestedType.indexOf(nested.proto),
        ]),
      ),
    ...message.nestedEnums.map((nested, index) =>
      enumText(nested, comment, [...path, at.inMessage.enum, index]),
    ),
  ];
}

function enumText(each: DescEnum, comment: CommentAt, path: readonly number[]): string {
  const rows = each.values.map((value, index) => [
    code(value.name),
    String(value.number),
    comment(...path, at.member, index),
  ]);
  const values = table(["value", "number", "meaning"], rows);
  return [`### ${localName(each)}`, comment(...path), values].join("\n\n");
}

function typeText(field: DescField, own: string): string {
  if (field.fieldKind === "map") {
    const value =
      field.mapKind === "scalar"
        ? scalarWord(field.scalar)
        : typeLink(field.message ?? field.enum, own);
    return `map of ${value}`;
  }
  const one =
    field.scalar === undefined
      ? typeLink(field.message ?? field.enum, own)
      : scalarWord(field.scalar);
  if (field.fieldKind === "list") return `list of ${one}`;
  return field.proto.proto3Optional ? `${one}, optional` : one;
}

const scalars = new Map([
  [1, "double"],
  [2, "float"],
  [3, "int64"],
  [4, "uint64"],
  [5, "int32"],
  [8, "bool"],
  [9, "string"],
  [12, "bytes"],
  [13, "uint32"],
]);

function scalarWord(scalar: number): string {
  return scalars.get(scalar) ?? `scalar ${scalar}`;
}

function typeLink(type: DescMessage | DescEnum | undefined, own: string): string {
  if (type === undefined) throw new Error("a field without a type");
  const space = type.file.proto.package;
  if (!space.startsWith("uas.")) return code(type.typeName);
  const page = space === own ? "" : fileOf(space);
  return `[${code(type.name)}](${page}#${localName(type).toLowerCase().replaceAll(".", "")})`;
}

/** The name without the package. */
function localName(type: DescMessage | DescEnum): string {
  return type.typeName.slice(type.file.proto.package.length + 1);
}

function commentsOf(file: DescFile): CommentAt {
  const comments = new Map(
    (file.proto.sourceCodeInfo?.location ?? []).map(
      ({ path, leadingComments, trailingComments }) => [
        path.join(),
        plain(leadingComments || trailingComments),
      ],
    ),
  );
  return (...path) => comments.get(path.join()) ?? "";
}

/** One line, without the brackets of links to other elements. Angle brackets would be HTML. */
function plain(comment: string): string {
  return comment
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\[([^\]]+)\]\[\]/g, "$1")
    .replaceAll("<", "&lt;")
    .trim();
}
