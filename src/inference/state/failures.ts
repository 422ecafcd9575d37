/** What callers are told of responses that are not there. */
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/** The caller's account has no response by this id. Somebody else's is told no different. */
export function noSuchResponse(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    `Response with id '${shorten(id)}' not found: it was never kept (\`store\`: false), was deleted, or is older than 30 days`,
    { param: "response_id" },
  );
}

/** A request continues a response that the account has not. */
export function noSuchPrevious(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Previous response with id '${shorten(id)}' not found: it was not kept, was deleted or has expired; send the conversation in \`input\` instead`,
    { param: "previous_response_id" },
  );
}

/** A request continues a response that is made in the background, and has no output. */
export function notComplete(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Previous response with id '${shorten(id)}' is not complete: it is still made, has failed or was cancelled; get it first`,
    { param: "previous_response_id" },
  );
}

/** Only what nobody waits for can be cancelled by its id. */
export function notInBackground(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Response with id '${shorten(id)}' was not made in the background and cannot be cancelled; close the connection of a request to end it`,
    { param: "response_id" },
  );
}

/** A response whose events are not kept cannot be read as a stream. */
export function notStreamed(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Response with id '${shorten(id)}' cannot be streamed: only one that was created with \`background\` and \`stream\` can, until a day after its end; get it without \`stream\``,
    { param: "stream" },
  );
}

/** A request refers to an item that is not among the account's responses. */
export function noSuchItem(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Item with id '${shorten(id)}' not found: its response was not kept (\`store\`: false), was deleted or has expired; send the item itself in \`input\``,
    { param: "input" },
  );
}

/** A request refers to more items than are looked up. */
export function tooManyReferences(max: number): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The input refers to more than ${max} items by their ids; send the items themselves`,
    { param: "input" },
  );
}

/** A request continues a conversation that is longer than any request may be. */
export function chainTooLong(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    "The conversation that `previous_response_id` continues is too long to be sent to the model; send a shorter one in `input`",
    { param: "previous_response_id" },
  );
}

/** A vendor keeps the response, and is not in the configuration any more. */
export function vendorRemoved(id: string, vendor: string): GatewayError {
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    `Response with id '${shorten(id)}' is kept by a vendor that this gateway does not use any more`,
    { param: "response_id", internal: `no vendor ${vendor} that keeps responses` },
  );
}

function shorten(id: string): string {
  return id.length <= 100 ? id : `${id.slice(0, 100)}…`;
}
