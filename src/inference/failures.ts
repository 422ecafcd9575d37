/** What callers are told where a call cannot be made. */
import { ErrorCode, GatewayError } from "../errors.ts";
import { formatUsd } from "../money.ts";

/** The balance does not cover the call. */
export function insufficient(neededNanos: bigint, availableNanos: bigint): GatewayError {
  const needed = formatUsd(neededNanos);
  const available = formatUsd(availableNanos);
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `Insufficient balance: this call needs ${needed} USD, ${available} USD is available; top up the account or lower max_tokens`,
    { metadata: { needed, available } },
  );
}

/** The vendor answered, but nothing that could be passed on. `internal` says what, for the log. */
export function unusable(internal: string): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model's vendor answered something unusable; try again",
    { internal },
  );
}

/** None of the model's vendors has what was asked for. */
export function incapable(model: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The model \`${model}\` cannot do this: name another one of those that GET /v1/models lists`,
    { param: "model" },
  );
}
