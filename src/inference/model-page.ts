/** Pages of the model list, in both directions. */
import type {
  ListModelsRequest,
  ListModelsResponse,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { pageSizeMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { nextPageToken, readPage } from "../page-token.ts";
import { modelMessage } from "./catalogue.ts";

/**
 * The page that is asked for.
 *
 * @param models all that the caller may use, by key
 * @throws GatewayError INVALID_REQUEST
 */
export function modelPage(
  models: readonly ModelConfig[],
  request: ListModelsRequest,
): Omit<ListModelsResponse, "$typeName" | "$unknown"> {
  const { pageToken, afterKey, beforeKey } = request;
  if ([pageToken, afterKey, beforeKey].filter((each) => each !== "").length > 1) {
    throw new GatewayError(
      ErrorCode.INVALID_REQUEST,
      "after_key: send only one of page_token, after_key and before_key",
      { param: "after_key" },
    );
  }
  const { limit, after = afterKey } = readPage(request, { defaultSize: pageSizeMax });
  if (beforeKey !== "") {
    const before = models.filter(({ key }) => key < beforeKey);
    const shown = before.slice(-limit).map(modelMessage);
    return { models: shown, nextPageToken: "", hasMore: before.length > limit };
  }
  const rest = models.filter(({ key }) => key > after);
  const shown = rest.slice(0, limit);
  const hasMore = rest.length > limit;
  return {
    models: shown.map(modelMessage),
    nextPageToken: nextPageToken(hasMore ? shown.at(-1)?.key : undefined),
    hasMore,
  };
}
