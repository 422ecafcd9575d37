import { accountEntities } from "../account/entity.ts";
import { alertEntities } from "../alert/entity.ts";
import { billingEntities } from "../billing/entity.ts";
import { callLogEntities } from "../billing/calls/entity.ts";
import { inferenceEntities } from "../inference/entity.ts";
import { keyEntities } from "../key/entity.ts";
import { operatorEntities } from "../operator/entity.ts";
import { nativeEntities } from "../native/entity.ts";
import { resultEntities } from "../result/entity.ts";
import { taskEntities } from "../task/entity.ts";
import { webhookEntities } from "../webhook/entity.ts";

/** The tables of all rooms. A room adds its list here. */
export const entities = [
  ...accountEntities,
  ...keyEntities,
  ...billingEntities,
  ...callLogEntities,
  ...inferenceEntities,
  ...taskEntities,
  ...webhookEntities,
  ...alertEntities,
  ...resultEntities,
  ...operatorEntities,
  ...nativeEntities,
] as const;
