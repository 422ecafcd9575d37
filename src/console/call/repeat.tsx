/** How to make a call like one of the log. */
import { useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { useText } from "../language.tsx";
import { CodeBlock } from "../ui/code.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { callCurl, tasksPath } from "./call-curl.ts";

/** The section with the curl, and with what has to be written into it first. */
export function Repeat({ call }: { call: CallRecord }) {
  const { calls: text } = useText();
  const isTask = call.path === tasksPath;
  const { data: schema } = useQuery(
    TaskService.method.getModelSchema,
    isTask && call.model !== "" ? { modelKey: call.model } : skipToken,
    { retry: false },
  );
  const code = callCurl(
    { ...call, model: call.model || text.yourModel },
    {
      origin: location.origin,
      message: text.yourMessage,
      body: text.yourBody,
      taskParams: schema && { [schema.paramsField]: schema.example ?? {} },
    },
  );
  return (
    <section>
      <div className="mb-1 flex flex-wrap items-center justify-between gap-3">
        <h3 className="font-semibold">{text.repeat}</h3>
        <CopyButton text={code} label={text.copyCurl} />
      </div>
      <p className="mb-3 text-[0.8125rem] text-muted">
        {isTask ? text.repeatTask : text.repeatHint}
      </p>
      <CodeBlock label={text.repeat} code={code} />
    </section>
  );
}
