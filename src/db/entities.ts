import { billingEntities } from "../billing/entity.ts";

/** The tables of all rooms. A room adds its list here. */
export const entities = [...billingEntities] as const;
