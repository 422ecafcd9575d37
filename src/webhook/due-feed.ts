/**
 * Hears at once what has become due. What is missed while the connection is down is found by the dispatcher's
 * next scan.
 */
import { Listener } from "../db/listener.ts";
import { dueChannel } from "./enqueue.ts";

/** What {@link createDueFeed} needs. */
export interface DueFeedOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  readonly onDue: (endpointId: string, accountId: string) => void;
}

/** Makes the feed; it hears from its start on. */
export function createDueFeed({ url, onDue }: DueFeedOptions): Listener {
  return new Listener({
    url,
    channel: dueChannel,
    applicationName: "uas-webhooks-due",
    onNotice: (payload) => {
      const [endpointId, accountId] = payload.split(" ");
      if (endpointId && accountId) onDue(endpointId, accountId);
    },
  });
}
