/** The comments of the contract, which the descriptors of `gen/` do not have. */
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";

/**
 * The numbers in a location's path: of messages, services, and of fields and methods inside them.
 */
const messagePath = 4;
const servicePath = 6;
const memberPath = 2;

/**
 * Comments by the full names of the RPC, message or field that they are about, each as one line.
 */
export type Comments = ReadonlyMap<string, string>;

/** Reads the comments of files with source information. */
export function commentsOf(files: readonly FileDescriptorProto[]): Comments {
  const all = files.flatMap((file) =>
    (file.sourceCodeInfo?.location ?? []).flatMap(({ path, leadingComments }) => {
      const name = nameAt(file, path);
      return name === undefined ? [] : [[name, plain(leadingComments)] as const];
    }),
  );
  return new Map(all);
}

function nameAt(file: FileDescriptorProto, path: readonly number[]): string | undefined {
  const [kind, index = 0, inner, at = 0] = path;
  const { package: space } = file;
  if (kind === servicePath && path.length === 4 && inner === memberPath) {
    const service = file.service[index];
    return `${space}.${service?.name}.${service?.method[at]?.name}`;
  }
  if (kind !== messagePath) return undefined;
  const message = file.messageType[index];
  if (path.length === 2) return `${space}.${message?.name}`;
  if (path.length !== 4 || inner !== memberPath) return undefined;
  return `${space}.${message?.name}.${message?.field[at]?.name}`;
}

/** One line, without the links that only readers of the contract can follow. */
function plain(comment: string): string {
  return comment
    .replace(/\s+/g, " ")
    .replace(/\[([^\]]+)\]\[\]/g, "$1")
    .trim();
}
