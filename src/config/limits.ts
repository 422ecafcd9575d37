/** Every fixed limit of the gateway, with its unit and its reason. Settings of an installation are in config.ts. */

/** The longest request body in bytes: 20 MiB, room for a few pictures in base64. */
export const bodyBytesMax = 20 * 1024 * 1024;

/** The longest request head in bytes. */
export const headerBytesMax = 16 * 1024;

/** How deep a JSON body may nest: the outermost value is level 1. */
export const jsonDepthMax = 64;

/** The longest request id in characters. */
export const requestIdCharsMax = 256;

/** The longest reply that is not streamed, in bytes: it is read whole before the head is sent, so that
 * a cut reply can still become an error. */
export const replyBytesMax = 64 * 1024 * 1024;

/** The longest single stream event in bytes. A longer one fails the stream. */
export const eventBytesMax = 16 * 1024 * 1024;

/** How much of a stream may wait for a slow client, in bytes; beyond it the vendor is paused. */
export const streamBufferBytesMax = 256 * 1024;

/** How long a hold lives without renewal, in milliseconds. With {@link holdSweepMs} it bounds how long
 * money of a dead process stays held: under 60 s. */
export const holdTtlMs = 45_000;

/** How often a living process renews the holds of its running calls, in milliseconds. */
export const holdRenewMs = 15_000;

/** How often expired holds are swept, in milliseconds. */
export const holdSweepMs = 5_000;

/** How long a call waits for its hold before it is answered with 503, in milliseconds. */
export const holdWaitMs = 900;

/** The most operations in one ledger batch. */
export const ledgerBatchMax = 1_000;

/** The most ledger batches in flight at once, each on its own connection. */
export const ledgerConnections = 4;

/** Bytes of text that count as one token where nothing better is known. */
export const bytesPerToken = 4;

/** The default and the largest page of a list. */
export const pageSizeDefault = 100;
export const pageSizeMax = 1_000;

/** How long a running call may go on after SIGTERM, in milliseconds. */
export const drainMs = 60_000;

/** How long a response that is kept here lives after it, or one built on it, was made, in milliseconds:
 * 30 days. */
export const storedResponseTtlMs = 30 * 24 * 60 * 60 * 1_000;

/** The longest response that is kept, with its input, in bytes: 8 MiB. A longer one is answered as any
 * other, but cannot be read or continued by its id. */
export const storedResponseBytesMax = 8 * 1024 * 1024;

/** How much an account may have kept, in bytes: 1 GiB. Beyond it those go first that would end first. */
export const storedAccountBytesMax = 1024 * 1024 * 1024;

/** The most responses of one conversation that a request can continue by id: each one is looked up. */
export const storedChainMax = 1_000;

/** How long a call waits for what is kept between calls, in milliseconds: to find it, and before its last
 * byte to keep it. As long as for its hold. */
export const stateWaitMs = 900;

/** The most items that one request can refer to by id: each one is looked up. */
export const itemReferencesMax = 5_000;

/** The longest id of a response, in characters: the router takes no longer one. */
export const responseIdCharsMax = 100;

/** How long reasoning is kept for a chat client that comes back with a tool's result, in milliseconds: a
 * day. */
export const keptReasoningTtlMs = 24 * 60 * 60 * 1_000;

/** The most reasoning that is kept of one turn, in bytes. */
export const keptReasoningBytesMax = 1024 * 1024;
