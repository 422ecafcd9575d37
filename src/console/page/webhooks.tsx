/** Webhooks: the secret, the receivers, and every delivery with its attempts. */
import { PageHead } from "../ui/card.tsx";
import { useText } from "../language.tsx";
import { localZone } from "../time.ts";
import { Deliveries } from "../webhook/deliveries.tsx";
import { Endpoints } from "../webhook/endpoints.tsx";
import { SecretCard } from "../webhook/secret-card.tsx";
import { TestEvent } from "../webhook/test-event.tsx";

/** The page. */
export function WebhooksPage() {
  const { webhooks: text, common } = useText();
  return (
    <>
      <PageHead
        title={text.title}
        hint={`${text.hint} ${common.zoneNote(localZone())}`}
        actions={<TestEvent />}
      />
      <div className="flex flex-col gap-6">
        <Deliveries />
        <Endpoints />
        <SecretCard />
      </div>
    </>
  );
}
