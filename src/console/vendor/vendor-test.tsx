/** Asks a vendor for a few words. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { CircleCheck, CircleX, Zap } from "lucide-react";
import {
  OperatorService,
  type TestVendorResponse,
} from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { useText } from "../language.tsx";
import { durationText } from "../time.ts";
import { Button } from "../ui/button.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** The button, and what came of it. */
export function VendorTest({ vendor }: { vendor: string }) {
  const {
    operator: { vendors: text },
  } = useText();
  const queries = useQueryClient();
  const test = useMutation(OperatorService.method.testVendor, {
    onSettled: () => queries.invalidateQueries(),
  });
  const label = test.data === undefined ? text.test : text.testAgain;
  return (
    <div className="flex flex-wrap items-center gap-3 border-t border-line px-5 py-3">
      <Button
        isBusy={test.isPending}
        aria-label={`${label}: ${vendor}`}
        onClick={() => test.mutate({ vendor })}
      >
        <Zap aria-hidden="true" />
        {label}
      </Button>
      <div role="status" className="min-w-0 flex-1">
        {test.data !== undefined && <Outcome outcome={test.data} />}
        <ErrorNote error={test.error} />
      </div>
    </div>
  );
}

function Outcome({
  outcome: { ok, modelKey, duration, text: said, error },
}: {
  outcome: TestVendorResponse;
}) {
  const {
    operator: { vendors: text },
  } = useText();
  const time = durationText(duration === undefined ? 0 : Math.round(durationMs(duration)));
  const Icon = ok ? CircleCheck : CircleX;
  return (
    <div className="flex items-start gap-2 text-[0.8125rem]">
      <Icon
        aria-hidden="true"
        className={`mt-0.5 size-4 shrink-0 ${ok ? "text-good" : "text-bad"}`}
      />
      <div className="min-w-0">
        <p className="font-medium">
          {ok ? text.testOk(modelKey, time) : text.testFailed(modelKey)}
        </p>
        <p className="break-words text-muted">{ok ? `“${said}”` : error}</p>
      </div>
    </div>
  );
}
