/** The tables of asynchronous tasks, and what keeps an ended task as it is. */
import { Migration } from "@mikro-orm/migrations";

/**
 * state: see src/task/state.ts. type: uas.inference.v1.ModelType. params, result: json and not jsonb, which
 * cannot hold U+0000 or half a surrogate pair. fingerprint: SHA-256 of what was asked for. fence: grows with
 * every claim, so that a process which was taken for dead can write no more. next_time: when somebody should
 * look at it. attempt_token: what the vendor is told to know a repeated submit by. hold, cost: nano-USD.
 */
const task = `
create table "task" (
  "id" uuid not null,
  "account_id" uuid not null,
  "key_id" uuid not null,
  "model" text not null,
  "type" smallint not null,
  "params" json not null,
  "fingerprint" bytea not null,
  "callback_id" text null,
  "callback_url" text null,
  "request_id" text not null,
  "state" text not null default 'queued',
  "progress" smallint not null default 0,
  "cancel_requested" boolean not null default false,
  "version" int not null default 1,
  "fence" int not null default 0,
  "lease_until" timestamptz null,
  "next_time" timestamptz not null default now(),
  "deadline" timestamptz not null,
  "attempt_token" uuid null,
  "attempt_time" timestamptz null,
  "poll_count" int not null default 0,
  "failure_count" int not null default 0,
  "vendor" text not null default '',
  "vendor_model" text not null default '',
  "vendor_task_id" text null,
  "hold" bigint not null,
  "price_version" text not null,
  "discount_bp" int not null,
  "result" json null,
  "error_code" text null,
  "error" text null,
  "usage" json null,
  "cost" bigint null,
  "create_time" timestamptz not null default now(),
  "start_time" timestamptz null,
  "finish_time" timestamptz null,
  "expire_time" timestamptz null,
  constraint "task_pkey" primary key ("id"),
  constraint "task_account_id_callback_id_unique" unique ("account_id", "callback_id"),
  constraint "task_state_check" check (state in ('queued', 'submitting', 'submit_unknown', 'running', 'finalizing', 'completed', 'failed', 'cancelled')),
  constraint "task_progress_check" check (progress >= 0 and progress <= 100 and (progress = 100) = (state = 'completed')),
  constraint "task_ended_check" check ((state in ('completed', 'failed', 'cancelled')) = (finish_time is not null) and (finish_time is null) = (cost is null)),
  constraint "task_error_check" check ((state = 'failed') = (error_code is not null)),
  constraint "task_result_check" check ((state = 'completed') = (result is not null)),
  constraint "task_cost_check" check (cost >= 0 and (cost = 0 or state = 'completed' or state = 'cancelled')),
  constraint "task_hold_check" check (hold >= 0)
) with (fillfactor = 70);
create index "task_account_id_id_index" on "task" ("account_id", "id");
create index "task_request_id_index" on "task" ("request_id", "id");
create index "task_queued_index" on "task" ("account_id", "id") where (state = 'queued');
create index "task_next_time_index" on "task" ("next_time") where (state in ('submitting', 'submit_unknown', 'running', 'finalizing'))`;

/** kind: `state` for changes of state, which the trigger writes; else a word of the room's. */
const event = `
create table "task_event" (
  "id" bigserial not null,
  "task_id" uuid not null,
  "time" timestamptz not null default now(),
  "kind" text not null,
  "state" text not null,
  "detail" json null,
  constraint "task_event_pkey" primary key ("id")
);
create index "task_event_task_id_id_index" on "task_event" ("task_id", "id")`;

/**
 * What callers can see of a task that has ended never changes (R-TSK-1), whoever writes; late news goes to
 * task_event. Progress never goes down. version counts the changes that callers can see. json has no equality:
 * it is compared as text.
 */
const guard = `
create function "task_guard"() returns trigger language plpgsql as $$
declare
  is_seen boolean;
begin
  new.progress := greatest(old.progress, new.progress);
  is_seen := (new.state, new.progress, new.cancel_requested, new.vendor, new.vendor_task_id,
      new.result::text, new.error_code, new.error, new.usage::text, new.cost, new.start_time, new.finish_time,
      new.expire_time)
    is distinct from (old.state, old.progress, old.cancel_requested, old.vendor, old.vendor_task_id,
      old.result::text, old.error_code, old.error, old.usage::text, old.cost, old.start_time, old.finish_time,
      old.expire_time);
  if is_seen and old.finish_time is not null then
    raise exception 'task % has ended: that is final', old.id using errcode = 'check_violation';
  end if;
  if (new.id, new.account_id, new.key_id, new.model, new.type, new.fingerprint, new.callback_id,
      new.callback_url, new.request_id, new.hold, new.create_time)
    is distinct from (old.id, old.account_id, old.key_id, old.model, old.type, old.fingerprint,
      old.callback_id, old.callback_url, old.request_id, old.hold, old.create_time) then
    raise exception 'what was asked for by task % never changes', old.id using errcode = 'check_violation';
  end if;
  new.version := old.version + is_seen::int;
  return new;
end $$;
create trigger "task_guard" before update on "task" for each row execute function "task_guard"()`;

/**
 * The payload is the task's id. Not told of new tasks: nobody can wait for one yet, and every notice makes
 * commits wait for each other.
 */
const notice = `
create function "task_notice"() returns trigger language plpgsql as $$
begin
  if new.state <> old.state then
    insert into task_event (task_id, kind, state) values (new.id, 'state', new.state);
  end if;
  perform pg_notify('task_changed', new.id::text);
  return null;
end $$;
create trigger "task_notice" after update on "task"
  for each row when (new.version <> old.version) execute function "task_notice"()`;

/** Appended to, never changed; removed only with its task. */
const eventGuard = `
create function "task_event_guard"() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and not exists (select from task where id = old.task_id) then
    return old;
  end if;
  raise exception 'events of task % are final', old.task_id using errcode = 'check_violation';
end $$;
create trigger "task_event_guard" before update or delete on "task_event"
  for each row execute function "task_event_guard"()`;

/** Creates what the task room keeps. */
export class Task0010 extends Migration {
  override up(): void {
    for (const statement of [task, event, guard, notice, eventGuard]) this.addSql(statement);
  }
}
