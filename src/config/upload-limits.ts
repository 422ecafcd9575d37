/**
 * The fixed limits of requests with files (`multipart/form-data`): apart from limits.ts, which has
 * all others.
 */

const kib = 1_024;
const mib = 1_024 * kib;

/** Maximum of a request with files. OpenAI takes recordings of 25 MB, and 16 images with a mask. */
export const uploadMax = {
  /** The whole request, in bytes. Its files are on disk. */
  bytes: 64 * mib,
  /** One text field: a prompt. */
  fieldBytes: 128 * kib,
  /** Files and fields. */
  parts: 64,
  /** Size that it counts for in the budget of incomplete bodies: its buffers. */
  memoryBytes: 2 * mib,
};
