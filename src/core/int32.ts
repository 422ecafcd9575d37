/** The largest whole number of the contract. */
export const int32Max = 2_147_483_647;
