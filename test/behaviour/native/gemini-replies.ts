/** Replies in Gemini's spelling: white space, numbers and line ends that a rewrite would change. */

/** A whole reply. */
export const geminiReply = `{
  "candidates": [ { "content": {"parts":[{"text": "Hello \\u00e9"}],"role":"model"}, "finishReason": "STOP",
    "avgLogprobs": -0.10, "seed": 9007199254740993 } ],
  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 20, "thoughtsTokenCount": 5, "totalTokenCount": 35},
  "modelVersion": "gemini-x",  "responseId": "vendor-response-id"
}
`;

/** Events of a stream: CRLF, as Google has them. Usage is cumulative. */
export const geminiEvents: readonly string[] = [
  'data: {"candidates": [{"content": {"parts": [{"text": "Hé"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 10,"candidatesTokenCount": 1,"totalTokenCount": 11}}\r\n\r\n',
  'data: {"candidates": [{"content": {"parts": [{"text": "llo"}],"role": "model"},"index": 0,"seed": 9007199254740993}],"usageMetadata": {"promptTokenCount": 10,"candidatesTokenCount": 2,"totalTokenCount": 12}}\r\n\r\n',
  'data: {"candidates": [{"content": {"parts": [{"text": "!"}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 10,"candidatesTokenCount": 20,"thoughtsTokenCount": 5,"totalTokenCount": 35}}\r\n\r\n',
];

/** The same as an array that grows. */
export const geminiArray: readonly string[] = [
  "[",
  ...geminiEvents.map((event, at) => `${at === 0 ? "" : ",\r\n"}${event.slice(6, -4)}`),
  "\n]\n",
];

/** The charged part of the figures above: thoughts are output. */
export const geminiUsage = { input: 10, output: 25 };
