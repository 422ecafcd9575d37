/**
 * Quirks: differences between vendors in what they accept. Requests are written according to them.
 */

/** The quirks of a vendor. Absent quirks are as the vendor's style documents. */
export interface VendorQuirks {
  /**
   * System text behind the first message of another role: kept `in_place`, sent `as_user` text, or
   * merged into the system text `at_top`. With the last two there is one system message, at the
   * beginning. Default: `in_place`; in messages style, the form that the model accepts.
   */
  readonly lateSystem?: "in_place" | "as_user" | "at_top" | undefined;
  /** Whether the role `developer` is known; if not, it is sent as `system`. Default `accepted`. */
  readonly developerRole?: "accepted" | "refused" | undefined;
  /**
   * The ids of tool calls: `any`, each `unique`, or unique with 9 letters and digits. Default
   * `unique`.
   */
  readonly callIds?: "any" | "unique" | "alphanumeric_9" | undefined;
  /** Whether each call needs one result, directly after it. Default `paired`. */
  readonly toolResults?: "any" | "paired" | undefined;
  /**
   * Whether a conversation may end with a message of the assistant. If not, a short message of the
   * user follows it. Default `accepted`; in messages style, the form that the model accepts.
   */
  readonly prefill?: "accepted" | "refused" | undefined;
  /**
   * Whether texts of white space are accepted; if not, they are omitted. Default `accepted`; in
   * messages style `refused`.
   */
  readonly blankText?: "accepted" | "refused" | undefined;
}
