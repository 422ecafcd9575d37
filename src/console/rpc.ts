/** How the pages speak to the gateway: the contract's own services, with the session's cookie. */
import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ErrorDetailSchema } from "../../gen/uas/error/v1/error_pb.ts";
import { millis } from "./duration.ts";

/** The one transport. POST only: what is asked for stands in no URL, hence in no history and no log. */
export const transport = createConnectTransport({ baseUrl: "/console/rpc" });

/** How long an answer counts as fresh, in milliseconds: long enough that going back and forth asks nothing twice. */
const staleMs = 15_000;

/**
 * Keeps what was asked.
 *
 * @param onSignedOut called when an answer says that the session is over
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

/** Only what another try can change is tried again. */
function mayRetry(count: number, error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return count < 2 && (code === Code.Unavailable || code === Code.Unknown);
}

/** Whether an error says that nobody is signed in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unauthenticated;
}

/** What to show of an error: its text, and the id that support finds it by. */
export interface ShownError {
  readonly text: string;
  readonly requestId: string;
  /** The member of the request that is at fault. Empty: none. */
  readonly param: string;
  /** Seconds after which another try makes sense. 0: not said. */
  readonly retryAfterSeconds: number;
}

/** Reads an error of an RPC, or of anything else. */
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
