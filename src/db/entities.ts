import { accountEntities } from "../account/entity.ts";
import { billingEntities } from "../billing/entity.ts";
import { inferenceEntities } from "../inference/entity.ts";
import { keyEntities } from "../key/entity.ts";

/** The tables of all rooms. A room adds its list here. */
export const entities = [
  ...accountEntities,
  ...keyEntities,
  ...billingEntities,
  ...inferenceEntities,
] as const;
