/**
 * A vendor of tasks behind HTTP, which outlives the processes that ask it, and counts what it was
 * made to do.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { HttpFailure } from "../../../src/http/failure.ts";
import type {
  CancelAnswer,
  Submitted,
  TaskUpdate,
  VendorTasks,
} from "../../../src/provider/task.ts";

/** How a vendor recognises repeated submits. */
export type Resubmit = VendorTasks["resubmit"];

/** See {@link startCrashVendor}. */
export type CrashVendor = Awaited<ReturnType<typeof startCrashVendor>>;

/** Starts it. Each of its tasks runs at the first look and is done at the second. */
export async function startCrashVendor() {
  /** The jobs of each token: more than one is money lost. */
  const jobs = new Map<string, number>();
  const looks = new Map<string, number>();
  const answer = (method: string, resubmit: string, token: string): unknown => {
    switch (method) {
      case "submit":
        if (resubmit !== "idempotent" || !jobs.has(token))
          jobs.set(token, (jobs.get(token) ?? 0) + 1);
        return { vendorTaskId: token };
      case "find":
        return jobs.has(token) ? { vendorTaskId: token } : null;
      case "cancel":
        return "cancelled";
      default: {
        const look = (looks.get(token) ?? 0) + 1;
        looks.set(token, look);
        if (look === 1) return { status: "running", progress: 40 };
        const file = { url: "https://vendor.test/a.png", contentType: "image/png" };
        return { status: "completed", outcome: { files: [file] } };
      }
    }
  };
  const server = createServer((request: IncomingMessage, response) => {
    const [, resubmit = "", loses, method = "", token = ""] = (request.url ?? "").split("/");
    request.resume();
    const isFirst = method === "submit" && !jobs.has(token);
    const body = JSON.stringify(answer(method, resubmit, token));
    if (isFirst && loses === "loses") return void request.socket.destroy();
    return void response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    jobs,
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The adapter to it. @param isLost whether its first answer to a submit never arrives */
export function crashTasks(resubmit: Resubmit, url: string, isLost: boolean): VendorTasks {
  const ask = async <T>(method: string, token: string, signal: AbortSignal): Promise<T> => {
    try {
      const headers = { connection: "close" };
      const reply = await fetch(
        `${url}/${resubmit}/${isLost ? "loses" : "keeps"}/${method}/${token}`,
        { signal, headers },
      );
      return (await reply.json()) as T;
    } catch (error) {
      throw new HttpFailure("reset", "reset", error);
    }
  };
  return {
    resubmit,
    types: new Set([ModelType.IMAGE]),
    canCancel: true,
    submit: ({ attemptToken, signal }) => ask<Submitted>("submit", attemptToken, signal),
    find: async (token, signal) =>
      (await ask<Submitted | null>("find", token, signal)) ?? undefined,
    poll: (token, signal) => ask<TaskUpdate>("poll", token, signal),
    cancel: (token, signal) => ask<CancelAnswer>("cancel", token, signal),
    units: ({ images }) => ({ images: Number(images) }),
  };
}
