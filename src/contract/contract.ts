/** Reads a contract from its descriptor. */
import { createFileRegistry, type DescFile, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type Comments, commentsOf } from "./comments.ts";

/** A contract: its files, without those that it imports from elsewhere, and their comments. */
export interface Contract {
  readonly files: readonly DescFile[];
  readonly comments: Comments;
}

/**
 * Reads a contract.
 *
 * @param bytes a `FileDescriptorSet` with all imports, as `buf build -o` writes it
 * @throws Error if the bytes are no descriptor
 */
export function readContract(bytes: Uint8Array): Contract {
  return contractOf(fromBinary(FileDescriptorSetSchema, bytes));
}

/** The contract of a parsed descriptor. */
export function contractOf(set: FileDescriptorSet): Contract {
  const files = [...createFileRegistry(set).files].filter(
    ({ proto }) => !proto.package.startsWith("google."),
  );
  if (files.length === 0) throw new Error("the descriptor has no files");
  return { files, comments: commentsOf(set.file) };
}
