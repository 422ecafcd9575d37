/**
 * The fixed limits of WebSocket connections: apart from limits.ts, which has all others. Times are
 * in milliseconds.
 */

const second = 1_000;
const minute = 60 * second;
const mib = 1_024 * 1_024;

/** Limits of connections. */
export const webSocketMax = {
  /** Connections of a process: each takes about 20 KiB while it is idle. */
  connections: 5_000,
  /** Connections of one key: more than agents of one program hold at once. */
  connectionsPerKey: 500,
  /**
   * Requests of a connection that run or wait, over all its streams. OpenAI runs as many at once.
   */
  requests: 16,
  /** Named streams of a connection, as at OpenAI. */
  streams: 32,
  /** Maximum age of a connection, as at OpenAI: clients know how to open another one. */
  ageMs: 60 * minute,
  /** Conversations that are kept for connections of a process: those beyond are sent again. */
  conversationBytes: 256 * mib,
} as const;

/**
 * Interval between checks of a connection. A connection that has not answered the previous ping is
 * closed.
 */
export const webSocketCheckMs = 30 * second;

/** Maximum time for a client to answer a close. */
export const webSocketCloseMs = 5 * second;
