/** Checks of the running gateway: its version, and the configuration of each process. */
import { createClient, type Transport } from "@connectrpc/connect";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { type Finding, findings } from "./finding.ts";

/** Findings about a running gateway, and the number of its processes. */
export interface GatewayFindings {
  readonly findings: readonly Finding[];
  readonly processes: number;
}

/** @param transport of the running gateway; undefined if none answers */
export async function checkGateway(
  transport: Transport | undefined,
  version: string,
): Promise<GatewayFindings> {
  const { ok, skipped, warning } = findings("gateway");
  if (transport === undefined) {
    const found = skipped("none runs on this data folder", "start one with `uas serve`");
    return { findings: [found], processes: 0 };
  }
  const info = await createClient(OperatorService, transport).getSystemInfo({});
  const { config, processes } = await createClient(ConfigService, transport).getConfig({});
  const text = `version ${info.version} on Node.js ${info.nodeVersion}`;
  const same =
    info.version === version
      ? ok(text)
      : warning(`${text}; this command is of ${version}`, "use the command of the same version");
  return {
    findings: [same, ...processFindings(processes), ...fileFindings(config)],
    processes: processes.length,
  };
}

interface ProcessFacts {
  readonly name: string;
  readonly hash: string;
  readonly problem: string;
  readonly needsRestart: readonly string[];
}

function processFindings(processes: readonly ProcessFacts[]): readonly Finding[] {
  const { ok, warning, problem } = findings("processes");
  const hashes = new Set(processes.map(({ hash }) => hash));
  const failed = processes.filter((each) => each.problem !== "");
  const waiting = [...new Set(processes.flatMap(({ needsRestart }) => needsRestart))];
  const names = processes.map(({ name, hash }) => `${name} ${hash}`).join(", ");
  return [
    hashes.size > 1
      ? problem(`different configurations are in force: ${names}`, "`uas reload` in each of them")
      : ok(`${processes.length} with the same configuration`),
    ...failed.map((each) =>
      problem(`${each.name} could not load the configuration: ${each.problem}`, "run `uas check`"),
    ),
    ...(waiting.length > 0
      ? [warning(`changed, but not in force: ${waiting.join(", ")}`, "restart the gateway")]
      : []),
  ];
}

interface FileFacts {
  readonly fileDiffers: boolean;
  readonly revision: bigint;
}

/** While a revision is in force, the file is not, whatever it contains. */
function fileFindings(config: FileFacts | undefined): readonly Finding[] {
  if (config?.fileDiffers !== true || config.revision > 0n) return [];
  const { warning } = findings("processes");
  return [warning("the configuration file differs from what is in force", "run `uas reload`")];
}
