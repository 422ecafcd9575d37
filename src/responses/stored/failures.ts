/** The errors of requests that refer to stored responses. */
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/**
 * The caller's account has no response with this id. Another account's response gets the same
 * error.
 */
export function noSuchResponse(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    `Response with id '${shorten(id)}' not found: it was never stored (\`store\`: false), was deleted, or is older than 30 days`,
    { param: "response_id" },
  );
}

/** A request continues a response that the account does not have. */
export function noSuchPrevious(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Previous response with id '${shorten(id)}' not found: it was not stored, was deleted or has expired; send the conversation in \`input\` instead`,
    { param: "previous_response_id" },
  );
}

/** A request continues a background response that has no output. */
export function notComplete(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Previous response with id '${shorten(id)}' is not complete: it is in progress, has failed or was cancelled; retrieve it first`,
    { param: "previous_response_id" },
  );
}

/** Only a background response can be cancelled by its id. */
export function notInBackground(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Response with id '${shorten(id)}' was not created with \`background\` and cannot be cancelled; close the connection of its request to end it`,
    { param: "response_id" },
  );
}

/** A response without stored events cannot be streamed. */
export function notStreamed(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Response with id '${shorten(id)}' cannot be streamed: only one that was created with \`background\` and \`stream\` can, until a day after its end; retrieve it without \`stream\``,
    { param: "stream" },
  );
}

/** A request refers to an item that none of the account's responses has. */
export function noSuchItem(id: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `Item with id '${shorten(id)}' not found: its response was not stored (\`store\`: false), was deleted or has expired; send the item itself in \`input\``,
    { param: "input" },
  );
}

/** A request refers to more items than the limit. */
export function tooManyReferences(max: number): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The input refers to more than ${max} items by their ids; send the items themselves`,
    { param: "input" },
  );
}

/** A request continues a conversation that exceeds the size limit of a request. */
export function chainTooLong(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    "The conversation that `previous_response_id` continues is too long to be sent to the model; send a shorter one in `input`",
    { param: "previous_response_id" },
  );
}

/** The vendor that stores the response is no longer configured. */
export function vendorRemoved(id: string, vendor: string): GatewayError {
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    `Response with id '${shorten(id)}' is stored by a vendor that this gateway no longer uses`,
    { param: "response_id", internal: `no vendor ${vendor} that stores responses` },
  );
}

function shorten(id: string): string {
  return id.length <= 100 ? id : `${id.slice(0, 100)}…`;
}
