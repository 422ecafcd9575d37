/** Every fixed limit of the gateway, with its unit and its reason. Settings of an installation are in config.ts. */

/** The longest request body in bytes: 20 MiB, room for a few pictures in base64. */
export const bodyBytesMax = 20 * 1024 * 1024;

/** The longest body that, refused as too long, is still read to its end and thrown away, in bytes: 128 MiB. Its
 * client would see a broken connection otherwise, not the refusal. */
export const discardedBodyBytesMax = 128 * 1024 * 1024;

/** How many calls of one key that is disabled, deleted or expired are recorded in {@link refusedKeyWindowMs}: enough to
 * see what calls with it. The rest is counted. */
export const refusedKeyRecordsMax = 10;

/** See {@link refusedKeyRecordsMax}; in milliseconds. */
export const refusedKeyWindowMs = 60_000;

/** Calls of how many such keys are recorded in {@link refusedKeyWindowMs}. */
export const refusedKeysMax = 10_000;

/** The longest request head in bytes. */
export const headerBytesMax = 16 * 1024;

/** How deep a JSON body may nest: the outermost value is level 1. */
export const jsonDepthMax = 64;

/** The longest request id in characters. */
export const requestIdCharsMax = 256;

/** The longest reply that is not streamed, in bytes: it is read whole before the head is sent, so that
 * a cut reply can still become an error. */
export const replyBytesMax = 64 * 1024 * 1024;

/** The most of a vendor's refusal that is read, in bytes. */
export const refusalBytesMax = 1024 * 1024;

/** The longest single stream event in bytes. A longer one fails the stream. */
export const eventBytesMax = 16 * 1024 * 1024;

/** How much of a stream may wait for a slow client, in bytes; beyond it the vendor is paused. */
export const streamBufferBytesMax = 256 * 1024;

/** How long a vendor may work on a task before it answers, in milliseconds, where its timeouts are shorter: there
 * are vendors that make a whole picture first, and what they make is paid for. The task's deadline ends it. */
export const vendorWorkMs = 30 * 60_000;

/** How often a process tells the database that it lives, in milliseconds. */
export const nodeHeartbeatMs = 5_000;

/** How long a process is silent before it is taken for dead, in milliseconds. With {@link holdSweepMs} it
 * bounds how long money of a dead process stays held: under 60 s. Four beats: one that is late, and a turn of
 * the event loop that is long, do no harm. */
export const nodeSilentMs = 20_000;

/** How long a hold lives without renewal, in milliseconds: for those that no process is known to have. */
export const holdTtlMs = 15 * 60_000;

/** How often a living process renews the holds of its running calls, in milliseconds. */
export const holdRenewMs = 60_000;

/** How often holds of dead processes and expired ones are swept, in milliseconds. */
export const holdSweepMs = 5_000;

/** How long a call waits for its hold before it is answered with 503, in milliseconds. */
export const holdWaitMs = 900;

/** How long the end of a process waits for a database that is away where a journal keeps everything, in
 * milliseconds. */
export const awayCloseMs = 1_000;

/** The most operations in one ledger batch. */
export const ledgerBatchMax = 1_000;

/** The most ledger batches in flight at once, each on its own connection. */
export const ledgerConnections = 4;

/** How long a settlement waits for the database before it goes to the journal, in milliseconds: long for a
 * database that works, short for a caller whose reply ends only then. */
export const journalAfterMs = 250;

/** The most settlements in the journal of a process. Running calls only can add to it while the database is
 * away, for new ones are refused. */
export const journalEntriesMax = 100_000;

/** The most bytes of a process's journal: 128 MiB, over 100,000 settlements. */
export const journalBytesMax = 128 * 1024 * 1024;

/** The length from which a file of the journal gets a successor, in bytes: 8 MiB. One settlement that stays
 * keeps its file. */
export const journalSegmentBytesMax = 8 * 1024 * 1024;

/** The pause after a failed write to the journal, in milliseconds. */
export const journalRetryMs = 1_000;

/** How often a process says that it uses its journal, and looks for those that nobody uses, in milliseconds. */
export const journalLookMs = 5_000;

/** How long nobody may have said that he uses a journal before it is taken over, in milliseconds. At its
 * start a process takes all at once. */
export const journalSilentMs = 20_000;

/** Bytes of text that count as one token where a call is charged and nobody counted. What is held is
 * bounded otherwise: dialect/json/text-weight.ts. */
export const bytesPerToken = 4;

/** The longest text whose tokens are counted exactly, in bytes, and how long that may take, in milliseconds:
 * the worst text of that length takes 2 s. */
export const countBytesMax = 2 * 1024 * 1024;
export const countTimeoutMs = 5_000;

/** How many texts may wait to be counted; the next one is estimated. */
export const countQueueMax = 256;

/** How long the thread that counts stays without work, and how long none is started after one failed, in
 * milliseconds. */
export const countIdleMs = 60_000;
export const countRestMs = 10_000;

/** How many tokens of output a stream holds in advance where its model's configuration does not say: as many
 * as nearly every reply has, so that few holds have to grow. */
export const holdOutputTokensDefault = 2_048;

/** How often the running streams are looked through, in milliseconds. */
export const streamLookMs = 1_000;

/** When a stream tells first how far it is, and how often after that, in milliseconds: what is lost with a
 * process is what came since. Most streams have ended before the first. */
export const checkpointFirstMs = 1_000;
export const checkpointMs = 5_000;

/** How long a stream goes on whose hold is used up and cannot grow because the database does not answer, in
 * milliseconds. */
export const streamOutageMs = 60_000;

/** How long a reply is read on after its client has disconnected, in milliseconds, where its vendor's configuration does
 * not say. Within 5 s nearly every reply that has begun to come is complete, with the vendor's own count. */
export const disconnectGraceMs = 5_000;

/** How long such a reply is read at the longest where it is read to its end, in milliseconds; and how many of them one
 * process reads at once: each holds a connection and up to `streamBufferBytesMax`. Over it their vendors are stopped. */
export const detachedReplyMs = 60 * 60_000;
export const detachedRepliesMax = 256;

/** The default and the largest page of a list. */
export const pageSizeDefault = 100;
export const pageSizeMax = 1_000;

/** How long a running call may go on after SIGTERM, in milliseconds. */
export const drainMs = 60_000;

/** How long a response that is kept here lives after it, or one built on it, was made, in milliseconds:
 * 30 days. */
export const storedResponseTtlMs = 30 * 24 * 60 * 60 * 1_000;

/** How long the events of a response in the background can be read again, in milliseconds after it was asked for or
 * made: a little longer than a day, in which it is made at the latest. They are ten times as long as what they say. */
export const storedEventsTtlMs = 26 * 60 * 60 * 1_000;

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

/** The longest address that a customer may give for us to ask, in characters. */
export const publicUrlCharsMax = 4_096;

/** The longest body of a webhook in bytes: 256 KiB. A longer result is left to the poll and to `result_url`. */
export const webhookBodyBytesMax = 256 * 1024;

/** The longest error message in a webhook, in characters. */
export const webhookErrorCharsMax = 8_192;

/** How long a receiver may take to answer a webhook, name, connection and TLS included, in milliseconds: the
 * specification's 5 seconds. */
export const webhookAnswerMs = 5_000;

/** How many webhooks may be under way at once: to one receiver, of one account, and in one process. */
export const webhookEndpointMax = 8;
export const webhookAccountMax = 50;
export const webhookNodeMax = 500;

/** The share of {@link webhookNodeMax} for receivers that failed or are slow, and the share for those and the
 * ones of which nothing is known yet: the rest is for those that answer, however many others hang. */
export const webhookSuspectShare = 0.5;
export const webhookUnprovenShare = 0.85;

/** How long a webhook may be under way before its receiver counts as one of those, in milliseconds. */
export const webhookSlowMs = 1_000;

/** How long a webhook that a process has taken stays its own, in milliseconds: an attempt and some reserve. Its
 * process dead, another one sends it after this time. */
export const webhookLeaseMs = 15_000;

/** How often due webhooks are looked for that no notice told of (retries, other processes' notices lost), in
 * milliseconds. */
export const webhookScanMs = 500;

/** The shortest time between two progress webhooks of a task, in milliseconds. */
export const webhookProgressMs = 1_000;

/** How many failures in a row open a receiver's breaker. */
export const webhookBreakerFailures = 5;

/** How long an open breaker waits before the first probe, and the most before a later one, in milliseconds. */
export const webhookProbeMs = 30_000;
export const webhookProbeMsMax = 10 * 60 * 1_000;

/** How long a receiver may fail before its deliveries are parked, in milliseconds: 120 hours. */
export const webhookDeadMs = 120 * 60 * 60 * 1_000;

/** How long webhooks and their attempts are kept, in milliseconds: 30 days. */
export const webhookKeptMs = 30 * 24 * 60 * 60 * 1_000;

/** How long a replaced secret stays valid, in milliseconds: a day. */
export const webhookRotationMs = 24 * 60 * 60 * 1_000;

/** How much of a receiver's answer is kept, in bytes. */
export const webhookAnswerBytesKept = 2 * 1024;

/** The longest result file in bytes: 512 MiB. */
export const resultBytesMax = 512 * 1024 * 1024;

/** How long result files are kept, in milliseconds: 7 days (R-TSK-8). */
export const resultTtlMs = 7 * 24 * 60 * 60 * 1_000;

/** How long it is remembered that a file has expired, in milliseconds: 30 days, of 410 in place of 404. */
export const resultMemoryMs = 30 * 24 * 60 * 60 * 1_000;

/** How long a file that is being stored may take before what is there of it is removed, in milliseconds:
 * longer than {@link resultFetchMs} and {@link resultUploadMs} together. */
export const resultPendingMs = 60 * 60 * 1_000;

/** How long a vendor's result may take: to its head, between two reads, and in all, in milliseconds. */
export const resultHeadMs = 30_000;
export const resultIdleMs = 60_000;
export const resultFetchMs = 15 * 60_000;

/** How long a file may take to the store, in milliseconds. */
export const resultUploadMs = 30 * 60_000;

/** How many redirects of a result are followed: storage of vendors is often one away. */
export const resultRedirectsMax = 3;

/** The most result files that a process sends at once; the next reader gets 503. Each holds a descriptor or a
 * connection to the store. */
export const resultReadersMax = 500;

/** How long a reader of a result file may take nothing, in milliseconds. */
export const resultReaderIdleMs = 60_000;

/** How often expired result files are removed, in milliseconds. They are not given out meanwhile. */
export const resultExpireMs = 10 * 60_000;

/** The most buckets of a usage series: 41 days by the hour, beyond what a chart can show. */
export const bucketsMax = 1_000;

/** How long a vendor may take to answer where a client may ask it to wait for the work to be done (`Prefer: wait`
 * is at most 60 s), in milliseconds. */
export const nativeWaitMs = 75_000;

/** How long the head of a vendor's stream waits for its first event, which may be trouble with the operator's
 * account, in milliseconds: that comes at once. */
export const nativeFaultWaitMs = 1_000;

/** How old what is told of a vendor's job may be, in milliseconds: all customers share one limit of questions at
 * their vendor. */
export const nativeRefreshMs = 1_000;

/** The longest state of a vendor's job that is kept, in bytes: 1 MiB. A longer one is asked for each time. */
export const nativeKeptBytesMax = 1024 * 1024;

/** How long it is remembered whose an object of a vendor is, in milliseconds: 60 days, longer than any vendor that
 * is served keeps one. */
export const nativeObjectTtlMs = 60 * 24 * 60 * 60 * 1_000;

/** How long an address works that is a key for itself, in milliseconds: as long as the vendor keeps what it leads
 * to. */
export const nativeLinkMs = 60 * 60 * 1_000;

/** The longest state of a vendor's job that its webhook carries, in bytes: 64 KiB (R-HOOK-7). */
export const nativePayloadBytesMax = 64 * 1024;

/**
 * How many calls to models a process runs at once by default. About as many paced streams as one core serves (50 events a
 * second each, some 20 µs each); JSON calls beyond that would only wait, 2,000 of them for seconds.
 */
export const concurrentCallsMax = 1_000;
