/** The tables of all rooms. A room adds its list here. */
export const entities = [] as const;
