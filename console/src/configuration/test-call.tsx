/** A test call of a vendor, and its result. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { useMutation } from "@connectrpc/connect-query";
import { CircleCheck, CircleX, Zap } from "lucide-react";
import {
  OperatorService,
  type TestVendorResponse,
} from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { durationText } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { useConfigurationText } from "./text.ts";

/** A button that tests what is in force. */
export function TestCall({
  vendor,
  model = "",
}: {
  vendor: string;
  /** The model to call. Default: the first one of the vendor that makes text. */
  model?: string;
}) {
  const text = useConfigurationText();
  const test = useMutation(OperatorService.method.testVendor);
  return (
    <div className="flex flex-wrap items-center gap-3">
      <Button
        isBusy={test.isPending}
        aria-label={`${text.test}: ${vendor}`}
        onClick={() => test.mutate({ vendor, modelKey: model })}
      >
        <Zap aria-hidden="true" />
        {model === "" ? text.test : vendor}
      </Button>
      <div role="status" className="min-w-0 flex-1 text-[0.8125rem]">
        {test.data !== undefined && <Outcome outcome={test.data} />}
        <ErrorNote error={test.error} />
      </div>
    </div>
  );
}

function Outcome({
  outcome: { ok, modelKey, duration, text: reply, error },
}: {
  outcome: TestVendorResponse;
}) {
  const text = useConfigurationText();
  const time = durationText(duration === undefined ? 0 : Math.round(durationMs(duration)));
  const Icon = ok ? CircleCheck : CircleX;
  return (
    <div className="flex items-start gap-2">
      <Icon
        aria-hidden="true"
        className={`mt-0.5 size-4 shrink-0 ${ok ? "text-good" : "text-bad"}`}
      />
      <div className="min-w-0">
        <p className="font-medium">
          {ok ? text.testOk(modelKey, time) : text.testFailed(modelKey)}
        </p>
        <p className="break-words text-muted">{ok ? reply : error}</p>
      </div>
    </div>
  );
}
