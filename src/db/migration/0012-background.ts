/** Responses that are made in the background. */
import { Migration } from "@mikro-orm/migrations";

/**
 * task_id: who makes the response. request: the exchange to make it with, until it is made; then null.
 * vendor_id: what its vendor calls it, where that keeps it too.
 */
const columns = `
alter table "stored_response"
  add column "task_id" uuid null,
  add column "request" bytea null,
  add column "vendor_id" text null,
  drop constraint "stored_response_kept_check",
  add constraint "stored_response_kept_check"
    check (vendor <> '' or (response is not null and input is not null)),
  add constraint "stored_response_request_check" check (request is null or task_id is not null)`;

/** The events of a response that is read as a stream, several to a row. last: the number of its last one. */
const events = `
create table "response_event" (
  "account_id" uuid not null,
  "response_id" text not null,
  "last" int not null,
  "events" bytea not null,
  constraint "response_event_pkey" primary key ("account_id", "response_id", "last")
)`;

/** They go with their response, whoever deletes it. */
const gone = `
create function "response_event_gone"() returns trigger language plpgsql as $$
begin
  delete from response_event where account_id = old.account_id and response_id = old.id;
  return null;
end $$;
create trigger "response_event_gone" after delete on "stored_response"
  for each row when (old.task_id is not null) execute function "response_event_gone"()`;

/** Creates what inference keeps of responses in the background. */
export class Background0012 extends Migration {
  override up(): void {
    for (const statement of [columns, events, gone]) this.addSql(statement);
  }
}
