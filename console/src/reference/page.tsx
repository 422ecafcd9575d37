/** The API reference: every endpoint of this gateway, from its `/openapi.json`. */
import { useQuery } from "@tanstack/react-query";
import { FileJson } from "lucide-react";
import { useState } from "react";
import { apiOrigin } from "../common/api.ts";
import { useText } from "../common/language.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Card, CardHead, Empty, PageHead, Skeleton } from "../ui/card.tsx";
import { FilterBar, isFound, SearchField } from "../ui/filter-bar.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";

const documentPath = `${apiOrigin()}/openapi.json`;

async function fetchEndpoints(): Promise<Endpoint[]> {
  const response = await fetch(documentPath);
  if (!response.ok) throw new Error(`${documentPath}: ${response.status}`);
  return endpointsOf(await response.json());
}

/** `/reference`. */
export function ReferencePage() {
  const { reference: text } = useText();
  const { data, error, refetch } = useQuery({ queryKey: [documentPath], queryFn: fetchEndpoints });
  const [search, setSearch] = useState("");
  const found = data?.filter(({ path, summary }) => isFound(search, path, summary));
  const areas = found && [...Map.groupBy(found, ({ area }) => area)];
  return (
    <>
      <PageHead
        title={text.title}
        hint={text.hint}
        actions={
          <a href={documentPath} className={buttonClass()} download="openapi.json">
            <FileJson aria-hidden="true" className="size-4" />
            OpenAPI
          </a>
        }
      />
      <Card className="mb-6">
        <FilterBar label={text.title}>
          <SearchField label={text.search} value={search} onChange={setSearch} />
        </FilterBar>
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {areas === undefined && error === null && <Skeleton className="m-5 h-40" />}
        {areas?.length === 0 && <Empty icon={<FileJson />} title={text.none} />}
      </Card>
      <div className="flex flex-col gap-6">
        {areas?.map(([area, endpoints]) => (
          <Card key={area}>
            <CardHead title={area} />
            <ul className="divide-y divide-line border-t border-line">
              {endpoints.map((endpoint) => (
                <EndpointRow key={endpoint.id} endpoint={endpoint} />
              ))}
            </ul>
          </Card>
        ))}
      </div>
    </>
  );
}

function EndpointRow({ endpoint }: { endpoint: Endpoint }) {
  const { reference: text } = useText();
  const { verb, path, summary, description, parameters, members, docs } = endpoint;
  return (
    <li>
      <details className="group">
        <summary className="flex cursor-pointer flex-wrap items-baseline gap-x-3 gap-y-1 px-5 py-3">
          <Badge tone={verb === "GET" ? "neutral" : "info"} isPlain>
            {verb}
          </Badge>
          <code className="font-mono text-[0.8125rem] break-all">{path}</code>
          <span className="text-[0.8125rem] text-muted">{summary}</span>
        </summary>
        <div className="flex flex-col gap-4 px-5 pb-5">
          <p className="max-w-3xl text-[0.8125rem]">{description}</p>
          <MemberList title={text.parameters} members={parameters} />
          <MemberList title={text.body} members={members} />
          {docs !== undefined && (
            <p className="text-[0.8125rem] text-muted">
              {text.describedAt} <span className="font-mono break-all">{docs}</span>
            </p>
          )}
        </div>
      </details>
    </li>
  );
}

function MemberList({ title, members }: { title: string; members: readonly Member[] }) {
  const { reference: text } = useText();
  if (members.length === 0) return null;
  return (
    <div>
      <h3 className="mb-2 text-xs font-semibold text-muted">{title}</h3>
      <dl className="grid grid-cols-1 gap-x-6 gap-y-2.5 text-[0.8125rem] sm:grid-cols-[minmax(9rem,max-content)_minmax(0,1fr)]">
        {members.map(({ name, place, type, isRequired, description }) => (
          <div key={`${place} ${name}`} className="contents">
            <dt className="font-mono break-all">{name}</dt>
            <dd className="min-w-0">
              <span className="text-muted">
                {[type, place, isRequired ? text.required : ""].filter(Boolean).join(" · ")}
              </span>
              {description !== "" && <p>{description}</p>}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** An endpoint of the reference. */
export interface Endpoint {
  readonly id: string;
  /** The area of the contract, which is the heading of its section. */
  readonly area: string;
  readonly verb: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly Member[];
  /** The members of the body. */
  readonly members: readonly Member[];
  /** The documentation of another API's body; undefined if the body is described here. */
  readonly docs: string | undefined;
}

/** A parameter, or a member of the body. */
export interface Member {
  readonly name: string;
  /** `path`, `query` or `header`; empty for members of the body. */
  readonly place: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly externalDocs?: { readonly url: string };
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> };
}

interface OpenapiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** The endpoints of a document that this gateway made, in its order. */
function endpointsOf(document: unknown): Endpoint[] {
  const { paths } = document as OpenapiDocument;
  return Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => readEndpoint(path, verb, operation)),
  );
}

function readEndpoint(path: string, verb: string, operation: Operation): Endpoint {
  const { operationId, tags, summary, description, parameters, requestBody } = operation;
  const schema = requestBody?.content["application/json"]?.schema ?? {};
  const { properties = {}, required = [], externalDocs } = schema;
  return {
    id: operationId,
    area: tags[0] ?? "",
    verb: verb.toUpperCase(),
    path,
    summary,
    description,
    parameters: parameters.map((each) => ({
      name: each.name,
      place: each.in,
      type: typeText(each.schema),
      isRequired: each.required === true,
      description: each.description ?? "",
    })),
    members: Object.entries(properties).map(([name, each]) => ({
      name,
      place: "",
      type: typeText(each),
      isRequired: required.includes(name),
      description: each.description ?? "",
    })),
    docs: externalDocs?.url,
  };
}

function typeText({ type, enum: words }: Schema): string {
  if (words !== undefined) return words.join(" | ");
  return typeof type === "string" ? type : (type ?? []).join(" | ");
}
