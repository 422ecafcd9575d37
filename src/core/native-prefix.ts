/** The URL prefix under which a vendor's native API is served. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { GatewayError } from "./errors.ts";

/** A vendor's own interface under its prefix, as far as HTTP goes. */
export interface NativePrefix {
  /** With its leading slash. */
  readonly prefix: string;
  /** Where its own clients put their key, after the platform's three places. */
  readonly keyForms: readonly (
    | { readonly in: "header"; readonly name: string }
    | { readonly in: "query"; readonly name: string }
    | { readonly in: "authorization"; readonly scheme: string }
  )[];
  /** Whether a request has a record of its own, and a line in the log with it. @param path below the prefix */
  isRecorded(this: void, method: string, path: string): boolean;
  /** A failure in the vendor's own form. */
  errorBody(error: GatewayError, requestId: string): JsonObject;
}
