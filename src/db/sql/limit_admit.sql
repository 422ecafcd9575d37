-- Decides one batch of requests of one process against limits of requests, tokens and concurrency, in their
-- order, and counts those that are admitted.
--
-- A minute is a sliding window: 13 slices of 5 seconds, the current one and the twelve before it. So no 60
-- seconds ever have more than a limit allows; a request counts for 60 to 65 seconds.
--
-- Parameters, by subject (a key, an account or a model; sorted, without repetitions):
--   p_subjects            Their names.
--   p_rpm, p_tpm, p_concurrency
--                         Their limits; null: none.
--   p_running             How many of its calls this process runs, without this batch: absolute, so that a
--                         repetition changes nothing. Other processes' count while they live (node).
-- By request:
--   p_members             Its subjects as subscripts of p_subjects, three for each request; 0: none.
--   p_tokens              The most tokens that it can use.
-- By return of tokens that were reserved and not used:
--   p_return_subjects     Subscripts of p_subjects.
--   p_return_slices, p_return_tokens
--                         The slice in which they were reserved, and how many.
--
-- Results, by request:
--   refused_by            The subscript of the subject that refuses it; 0: admitted.
--   reason                1 requests, 2 tokens, 3 concurrency.
--   retry_ms              When its turn may come.
-- By subject: used_requests, used_tokens, after the batch. slice: where the tokens are reserved.
--
-- Locks: the subjects in the order of their names.
create or replace function limit_admit(
  p_node uuid, p_subjects text[], p_rpm integer[], p_tpm integer[], p_concurrency integer[],
  p_running integer[], p_members integer[], p_tokens integer[],
  p_return_subjects integer[] = '{}', p_return_slices bigint[] = '{}', p_return_tokens bigint[] = '{}',
  out refused_by integer[], out reason integer[], out retry_ms integer[],
  out used_requests bigint[], out used_tokens bigint[], out slice bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_slices constant integer := 13;
  v_now double precision;
  v_row record;
  v_i integer;
  v_s integer;
  v_n integer;
  v_shift integer;
  v_requests jsonb[];
  v_tokens jsonb[];
  v_others integer[];
  v_added integer[];
  v_added_tokens bigint[];
  v_list bigint[];
  v_need bigint;
  v_sum bigint;
  v_by integer;
  v_why integer;
begin
  v_n := coalesce(cardinality(p_subjects), 0);
  -- What a crash of the database forgets is a fraction of a second: no call waits for the disk.
  perform set_config('synchronous_commit', 'off', true);
  v_list := array_fill(0::bigint, array[v_slices]);
  -- Before any lock: a batch that waits here for another one that inserts the same holds nothing.
  if (select count(*) from limit_use u where u.subject = any(p_subjects)) < v_n then
    insert into limit_use (subject, slice, requests, tokens)
      select t.subject, 0, v_list, v_list from unnest(p_subjects) as t(subject) order by 1
      on conflict do nothing;
  end if;
  perform from limit_use u where u.subject = any(p_subjects) order by u.subject for update;
  -- After the locks: what others have counted is of no later slice.
  v_now := extract(epoch from clock_timestamp());
  select greatest(floor(v_now / 5)::bigint, max(u.slice)) into slice
    from limit_use u where u.subject = any(p_subjects);
  v_added := array_fill(0, array[v_n]);
  v_added_tokens := array_fill(0::bigint, array[v_n]);
  for v_row in
    select u.*, t.n, (select coalesce(sum(r.running), 0)::integer from limit_running r
          join node d on d.id = r.node_id and d.ended is null
          where r.subject = u.subject and r.node_id <> p_node) as others
      from unnest(p_subjects) with ordinality as t(subject, n) join limit_use u on u.subject = t.subject
      order by t.n
  loop
    v_s := v_row.n;
    v_shift := least(slice - v_row.slice, v_slices);
    v_list := v_row.requests;
    if v_shift > 0 then
      v_list := array_fill(0::bigint, array[v_shift]) || v_list[1:v_slices - v_shift];
    end if;
    v_requests[v_s] := to_jsonb(v_list);
    used_requests[v_s] := (select sum(x) from unnest(v_list) x);
    v_list := v_row.tokens;
    if v_shift > 0 then
      v_list := array_fill(0::bigint, array[v_shift]) || v_list[1:v_slices - v_shift];
    end if;
    for v_i in 1..coalesce(cardinality(p_return_subjects), 0) loop
      if p_return_subjects[v_i] = v_s and slice - p_return_slices[v_i] between 0 and v_slices - 1 then
        v_shift := slice - p_return_slices[v_i] + 1;
        v_list[v_shift] := greatest(v_list[v_shift] - p_return_tokens[v_i], 0);
      end if;
    end loop;
    v_tokens[v_s] := to_jsonb(v_list);
    used_tokens[v_s] := (select sum(x) from unnest(v_list) x);
    v_others[v_s] := v_row.others;
  end loop;

  for v_i in 1..coalesce(cardinality(p_tokens), 0) loop
    v_by := 0;
    for v_n in 3 * v_i - 2..3 * v_i loop
      v_s := p_members[v_n];
      continue when v_s = 0 or v_by > 0;
      if used_requests[v_s] + 1 > p_rpm[v_s] then
        v_by := v_s; v_why := 1; v_need := used_requests[v_s] + 1 - p_rpm[v_s];
      elsif used_tokens[v_s] + p_tokens[v_i] > p_tpm[v_s] then
        v_by := v_s; v_why := 2; v_need := used_tokens[v_s] + p_tokens[v_i] - p_tpm[v_s];
      elsif v_others[v_s] + p_running[v_s] + v_added[v_s] + 1 > p_concurrency[v_s] then
        v_by := v_s; v_why := 3;
      end if;
    end loop;
    refused_by[v_i] := v_by;
    reason[v_i] := case when v_by > 0 then v_why else 0 end;
    retry_ms[v_i] := 0;
    if v_by > 0 and v_why = 3 then
      retry_ms[v_i] := 1000;
    elsif v_by > 0 then
      -- The oldest slices leave first: until as much has left as is missing.
      v_sum := 0;
      for v_n in reverse v_slices..1 loop
        v_sum := v_sum + (case v_why when 1 then v_requests[v_by] else v_tokens[v_by] end
          ->> (v_n - 1))::bigint;
        retry_ms[v_i] := ceil(((slice + v_slices - v_n + 1) * 5 - v_now) * 1000);
        exit when v_sum >= v_need;
      end loop;
    else
      for v_n in 3 * v_i - 2..3 * v_i loop
        v_s := p_members[v_n];
        continue when v_s = 0;
        used_requests[v_s] := used_requests[v_s] + 1;
        used_tokens[v_s] := used_tokens[v_s] + p_tokens[v_i];
        v_added[v_s] := v_added[v_s] + 1;
        v_added_tokens[v_s] := v_added_tokens[v_s] + p_tokens[v_i];
        v_requests[v_s] := jsonb_set(v_requests[v_s], '{0}',
          to_jsonb((v_requests[v_s] ->> 0)::bigint + 1));
        v_tokens[v_s] := jsonb_set(v_tokens[v_s], '{0}',
          to_jsonb((v_tokens[v_s] ->> 0)::bigint + p_tokens[v_i]));
      end loop;
    end if;
  end loop;

  update limit_use u set slice = limit_admit.slice,
      requests = (select array_agg(x::bigint order by o) from jsonb_array_elements_text(t.requests) with ordinality e(x, o)),
      tokens = (select array_agg(x::bigint order by o) from jsonb_array_elements_text(t.tokens) with ordinality e(x, o))
    from unnest(p_subjects, v_requests, v_tokens) as t(subject, requests, tokens)
    where u.subject = t.subject;
  insert into limit_running as r (subject, node_id, running)
    select t.subject, p_node, t.running + t.added
      from unnest(p_subjects, p_running, v_added, p_concurrency) as t(subject, running, added, limited)
      where t.limited is not null
    on conflict (subject, node_id) do update set running = excluded.running
      where r.running <> excluded.running;
end $$;
