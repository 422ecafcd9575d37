/** How responses in the background stand. */
import { parseRecord } from "../../dialect/json.ts";
import { standingResponse } from "../../dialect/responses/standing-response.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import { noSuchResponse } from "../state/failures.ts";
import type { ResponseStore } from "../state/response-store.ts";
import type { BackgroundTasks } from "./tasks.ts";

/** See {@link createBackgroundState}. */
export interface BackgroundState {
  /** The response as it stands, as JSON in UTF-8. @throws GatewayError NOT_FOUND */
  standing(accountId: string, responseId: string): Promise<Buffer>;
  /** Asks to end one that is being made, and waits a moment for its end. One that has ended otherwise, or ends
   * soon, stays as it is. */
  cancel(accountId: string, taskId: string): Promise<void>;
}

/** Makes it. */
export function createBackgroundState(
  tasks: Pick<BackgroundTasks, "find" | "cancel">,
  responses: Pick<ResponseStore, "find">,
): BackgroundState {
  return {
    async standing(accountId, responseId) {
      const found = await responses.find(accountId, responseId);
      if (found?.kind !== "here") throw noSuchResponse(responseId);
      const { response, background } = found;
      if (background?.isPending !== true) return response;
      const standing = await tasks.find(accountId, background.taskId);
      if (standing === undefined) throw noSuchResponse(responseId);
      // Its end and its response are one transaction: it came between the two questions.
      if (standing.status === "completed") return this.standing(accountId, responseId);
      const begun = parseRecord(response.toString()) ?? {};
      return Buffer.from(JSON.stringify(standingResponse(begun, standing)));
    },

    async cancel(accountId, taskId) {
      try {
        await tasks.cancel(accountId, taskId);
      } catch (error) {
        // What was made is being written down, or its task is older than tasks are kept.
        const { code } = error instanceof GatewayError ? error : { code: undefined };
        const isOver = code === ErrorCode.TASK_NOT_CANCELLABLE || code === ErrorCode.TASK_NOT_FOUND;
        if (!isOver) throw error;
      }
    },
  };
}
