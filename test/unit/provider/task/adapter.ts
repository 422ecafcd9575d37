/** An adapter of tasks, and the answers of its vendor. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { SimulatedVendor, TaskAnswer } from "./simulated.ts";

/** An adapter for one type of task. */
export interface Adapter {
  /** The kind of its vendor. */
  readonly kind: string;
  readonly type: ModelType;
  /** The vendor's name of the model. */
  readonly model: string;
  /** The fewest parameters. */
  readonly least: JsonObject;
  /** One of all of them. */
  readonly most: JsonObject;
  /** Parameters that the vendor's filter refuses. Absent if it refuses only later. */
  readonly forbidden?: JsonObject;
  /** Names that `extra` may not contain. */
  readonly closed: readonly string[];
  readonly secret: string;
  /** Whether it works while it is waited for. */
  readonly isSynchronous: boolean;
  /** End of the vendor's address. */
  readonly basePath: string;
  start(): Promise<SimulatedVendor>;
  /** Refusals in the vendor's own words. */
  readonly says: Readonly<Record<"money" | "invalid" | "busy" | "full" | "broken", TaskAnswer>>;
}
