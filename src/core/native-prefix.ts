/** The URL prefix under which a vendor's native API is served. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { GatewayError } from "./errors.ts";

/** A vendor's native API, as the HTTP edge sees it. */
export interface NativePrefix {
  /** The path prefix, with a leading slash. */
  readonly prefix: string;
  /**
   * Headers and parameters in which the vendor's clients put a key, checked after the platform's
   * three.
   */
  readonly keyForms: readonly (
    | { readonly in: "header"; readonly name: string }
    | { readonly in: "query"; readonly name: string }
    | { readonly in: "authorization"; readonly scheme: string }
  )[];
  /**
   * Whether the request has a call record and a log line.
   *
   * @param path below the prefix
   */
  isRecorded(this: void, method: string, path: string): boolean;
  /** The error body in the vendor's form. */
  errorBody(error: GatewayError, requestId: string): JsonObject;
}
