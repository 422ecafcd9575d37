/** The names of OpenAI's moderations, and what each can cost (R-TXT-13). */
import { classed } from "../features/member-class.ts";

/** The members of a request. */
export const moderationsMembers = classed("free", "input model");

/** The members below them. */
export const moderationsNested = classed("free", "image_url text type url");
