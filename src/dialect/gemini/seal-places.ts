/**
 * Where a signature stood: Gemini wants it back there. Elsewhere a seal belongs to reasoning; here it may
 * come with any part, so a seal's `data`, which Gemini does not need, keeps the place.
 */
export const sealPlaces = {
  /** On the function call that follows the reasoning. */
  call: "call",
  /** On the thought itself. */
  thought: "thought",
  /** On the text or picture before the reasoning. */
  content: "content",
} as const;
