/** A submit that needs no gateway around it, for processes that die in it. Needs no test runner. */
import { createHash } from "node:crypto";
import { systemClock } from "../../../src/core/clock.ts";
import {
  createSubmit,
  openSubmitPool,
  type SubmitOptions,
  type SubmitOverrides,
} from "../../../src/task/submit/submit.ts";
import { imageNanos, model, price } from "./worker-setup.ts";

/** Submits one picture in the name of an account. */
export function openSubmit(url: string, parts: Partial<SubmitOptions> = {}) {
  const { pool = openSubmitPool(url) } = parts;
  const taskModel = {
    model: model("m", ["v"]),
    field: "imageParams" as const,
    schema: {},
    example: {},
    read: () => ({ images: 1 }),
    units: () => ({ images: 1 }),
  };
  const pricing = { priceNow: () => price, version: () => "v", hold: () => imageNanos };
  const submit = createSubmit({ pricing, clock: systemClock, ...parts, pool });
  return {
    submit: (accountId: string, callbackId: string | null, own: SubmitOverrides = {}) =>
      submit(
        {
          taskModel,
          params: { images: 1 },
          callbackId,
          callbackIdName: "callbackId",
          callbackUrl: null,
          fingerprint: createHash("sha256")
            .update(callbackId ?? "")
            .digest(),
        },
        {
          caller: { kind: "key", accountId, keyId: accountId, models: undefined },
          requestId: "r",
        },
        own,
      ),
    close: () => pool.end(),
  };
}
