/** Under which names a vendor knows the tools of a request. */
import { type Tool, ToolType } from "../../gen/uas/inference/v1/conversation_pb.ts";
import { restoreToolName } from "./tool-names.ts";

/** A tool as the caller knows it. */
export interface KnownTool {
  readonly name: string;
  readonly namespace: string;
  readonly type: ToolType;
}

/** Finds the tool that a vendor's call means, by the name that the vendor was told. */
export function toolFinder(tools: readonly Tool[]): (wireName: string) => KnownTool | undefined {
  const known = tools.flatMap(({ kind, namespace }): KnownTool[] => {
    if (kind.case === "function") {
      return [{ name: kind.value.name, namespace, type: ToolType.FUNCTION }];
    }
    return kind.case === "custom"
      ? [{ name: kind.value.name, namespace, type: ToolType.CUSTOM }]
      : [];
  });
  return (wireName) => restoreToolName(known, wireName);
}
