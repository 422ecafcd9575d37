/** The models of the gateway. */
import { useQuery } from "@connectrpc/connect-query";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";

/** The most models that are asked for. */
const modelsMax = 1_000;

/** The models of this gateway. */
export function useModels() {
  return useQuery(
    InferenceService.method.listModels,
    { pageSize: modelsMax },
    { staleTime: 60_000, select: ({ models }) => models },
  );
}
