/** The comments of the contract, which the descriptors of `gen/` do not have. */
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";

/** Comments by the full names of the elements that they are about, each as one line. */
export type Comments = ReadonlyMap<string, string>;

/** Reads the comments of files with source information. */
export function commentsOf(files: readonly FileDescriptorProto[]): Comments {
  const comments = new Map<string, string>();
  for (const file of files) {
    const names = namesByPath(file);
    for (const { path, leadingComments } of file.sourceCodeInfo?.location ?? []) {
      const name = names.get(path.join());
      if (name !== undefined) comments.set(name, plain(leadingComments));
    }
  }
  return comments;
}

/** The full names of a file's elements, by their paths in its source information: `4,0,2,1`. */
function namesByPath(file: FileDescriptorProto): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const space = file.package;
  for (const [index, message] of file.messageType.entries()) {
    addMessage(names, message, { name: `${space}.${message.name}`, path: `4,${index}` });
  }
  for (const [index, each] of file.enumType.entries()) {
    addEnum(names, each, { name: `${space}.${each.name}`, path: `5,${index}` });
  }
  for (const [index, service] of file.service.entries()) {
    const name = `${space}.${service.name}`;
    names.set(`6,${index}`, name);
    for (const [at, method] of service.method.entries()) {
      names.set(`6,${index},2,${at}`, `${name}.${method.name}`);
    }
  }
  for (const [index, extension] of file.extension.entries()) {
    names.set(`7,${index}`, `${space}.${extension.name}`);
  }
  return names;
}

/** The full name of a type, and its path. */
interface Place {
  readonly name: string;
  readonly path: string;
}

function addMessage(
  names: Map<string, string>,
  message: DescriptorProto,
  { name, path }: Place,
): void {
  names.set(path, name);
  for (const [index, field] of message.field.entries()) {
    names.set(`${path},2,${index}`, `${name}.${field.name}`);
  }
  for (const [index, inner] of message.nestedType.entries()) {
    addMessage(names, inner, { name: `${name}.${inner.name}`, path: `${path},3,${index}` });
  }
  for (const [index, inner] of message.enumType.entries()) {
    addEnum(names, inner, { name: `${name}.${inner.name}`, path: `${path},4,${index}` });
  }
}

function addEnum(
  names: Map<string, string>,
  each: EnumDescriptorProto,
  { name, path }: Place,
): void {
  names.set(path, name);
  for (const [index, value] of each.value.entries()) {
    names.set(`${path},2,${index}`, `${name}.${value.name}`);
  }
}

/** One line, without the links that only readers of the contract can follow. */
function plain(comment: string): string {
  return comment
    .replace(/\s+/g, " ")
    .replace(/\[([^\]]+)\]\[\]/g, "$1")
    .trim();
}
