/** The names that OpenAI's chat completions have, and what each can cost. */
import { classed } from "../member-class.ts";

/** The values of `openai-beta`, of all APIs of OpenAI: clients send some of them with every request. */
export const openaiBetas = {
  ...classed("free", "responses=experimental", "responses_websockets=2026-02-06"),
  ...classed(
    "free",
    "assistants=v1",
    "assistants=v2",
    "realtime=v1",
    "chatkit_beta=v1",
    "agents=v1",
  ),
  // Neither the number nor the depth of the agents has a limit.
  ...classed("refused", "responses_multi_agent=v1"),
} as const;
