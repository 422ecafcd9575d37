/** Vendors, for operators: where calls go and how that works out. */
import { useQuery } from "@connectrpc/connect-query";
import { Network } from "lucide-react";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { useText } from "../common/language.tsx";
import { Card, Empty, PageHead, Skeleton } from "../ui/card.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { VendorCard } from "./vendor-card.tsx";

/** How often it is asked for, in milliseconds. */
const refreshMs = 15_000;

/** The most vendors that are asked for. */
const vendorsMax = 1_000;

/** The page. */
export function VendorsPage() {
  const {
    operator: { vendors: text },
  } = useText();
  const { data, error, refetch } = useQuery(
    OperatorService.method.listVendors,
    { pageSize: vendorsMax },
    { refetchInterval: refreshMs },
  );
  return (
    <>
      <PageHead title={text.title} hint={`${text.hint} ${text.testNote}`} />
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {error === null && data?.vendors.length === 0 && (
        <Card>
          <Empty icon={<Network />} title={text.empty} hint={text.emptyHint} />
        </Card>
      )}
      {error === null && (
        <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-2">
          {data === undefined ? (
            <>
              <Skeleton className="h-80" />
              <Skeleton className="h-80" />
            </>
          ) : (
            data.vendors.map((vendor) => <VendorCard key={vendor.vendor} vendor={vendor} />)
          )}
        </div>
      )}
    </>
  );
}
