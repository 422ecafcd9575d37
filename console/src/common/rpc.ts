/** Calls of the gateway: the services of the contract, with the session cookie. */
import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { keepPreviousData, MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ErrorDetailSchema } from "../../../gen/uas/error/v1/error_pb.ts";
import { millis } from "./contract.ts";

/**
 * The transport of all services. POST only, so that requests are in no URL, no history and no log.
 */
export const transport = createConnectTransport({ baseUrl: "/console/rpc" });

/** Time for which a reply is fresh: long enough that going back and forth fetches nothing twice. */
const staleMs = 15_000;

/**
 * Creates the cache of queries.
 *
 * @param onSignedOut called if a reply reports that the session has ended
 */
export function createQueries(onSignedOut: () => void): QueryClient {
  const onError = (error: unknown): void => {
    if (isSignedOut(error)) onSignedOut();
  };
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: { staleTime: staleMs, retry: mayRetry, refetchOnWindowFocus: true },
      mutations: { retry: false },
    },
  });
}

/** Whether a retry can succeed. */
function mayRetry(count: number, error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return count < 2 && (code === Code.Unavailable || code === Code.Unknown);
}

/** Whether an error means that there is no signed-in user. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unauthenticated;
}

/** The visible parts of an error. */
export interface ShownError {
  readonly text: string;
  readonly requestId: string;
  /** The wrong field of the request; empty if there is none. */
  readonly param: string;
  /** Seconds to wait before a retry; 0 if unknown. */
  readonly retryAfterSeconds: number;
}

/** The shown parts of an error, of an RPC or anything else. */
export function shownError(error: unknown): ShownError {
  const told = ConnectError.from(error);
  const [detail] = told.findDetails(ErrorDetailSchema);
  return {
    text: told.rawMessage,
    requestId: told.metadata.get("x-request-id") ?? "",
    param: detail?.param ?? "",
    retryAfterSeconds: millis(detail?.retryDelay) / 1_000,
  };
}

/** Options of an infinite query on a method with page tokens, which fetches a list page by page. */
export const paged = {
  pageParamKey: "pageToken",
  getNextPageParam: ({ nextPageToken }: { readonly nextPageToken: string }): string | undefined =>
    nextPageToken || undefined,
  placeholderData: keepPreviousData,
} as const;
