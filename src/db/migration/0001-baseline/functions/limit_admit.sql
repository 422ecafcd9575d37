-- Decides one batch of requests of one process against limits of requests, tokens and concurrency,
-- in their order, and counts the admitted ones.
--
-- A minute is a sliding window: 13 slices of 5 seconds, the current one and the twelve before it.
-- So no period of 60 seconds ever exceeds a limit; a request counts for 60 to 65 seconds.
--
-- Parameters, by subject (a key, an account or a model; sorted, without repetitions):
--   p_subjects            Their names.
--   p_rpm, p_tpm, p_concurrency
--                         Their limits; null: unlimited.
--   p_running             Number of its calls that this process runs, without this batch. The
--                         number
--                         is absolute, so that a repetition changes nothing. Numbers of other
--                         processes count while they are alive (node).
--
-- Parameters, by request:
--   p_members             Its subjects as subscripts of p_subjects, three for each request; 0:
--                         none.
--   p_tokens              The maximum number of tokens that it can use.
--
-- Parameters, by return of tokens that were reserved and not used:
--   p_return_subjects     Subscripts of p_subjects.
--   p_return_slices, p_return_tokens
--                         The slice in which they were reserved, and their number.
--
-- Results, by request:
--   refused_by            The subscript of the subject that refuses it; 0: admitted.
--   reason                1 requests, 2 tokens, 3 concurrency.
--   retry_ms              Time after which a retry may be admitted.
--
-- Results, by subject: used_requests, used_tokens, after the batch. slice: the slice in which the
-- tokens are reserved.
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
  v_n integer := coalesce(cardinality(p_subjects), 0);
  v_at integer;
  v_shift integer;
  v_last bigint[];
  -- The slices of all subjects in sequence: the slices of each subject begin after v_start.
  v_start integer[];
  v_requests bigint[];
  v_tokens bigint[];
  v_gone bigint[];
  v_others integer[];
  v_added integer[];
  v_is_concurrent boolean := false;
  v_need bigint;
  v_sum bigint;
  v_by integer;
  v_why integer;
begin
  -- A crash of the database loses a fraction of a second of the counters: no call waits for the
  -- disk.
  perform set_config('synchronous_commit', 'off', true);
  -- Before any lock: a batch that waits here for another one that inserts the same holds nothing.
  if (select count(*) from limit_use u where u.subject = any(p_subjects)) < v_n then
    insert into limit_use (subject, slice, requests, tokens)
      select t.subject, 0, array_fill(0::bigint, array[v_slices]), array_fill(0::bigint, array[v_slices])
        from unnest(p_subjects) as t(subject) order by 1
      on conflict do nothing;
  end if;
  for v_row in
    select u.subject, u.slice, u.requests, u.tokens from limit_use u
      where u.subject = any(p_subjects) order by u.subject for update
  loop
    v_s := array_position(p_subjects, v_row.subject);
    v_start[v_s] := coalesce(cardinality(v_requests), 0);
    v_last[v_s] := v_row.slice;
    v_requests := v_requests || v_row.requests;
    v_tokens := v_tokens || v_row.tokens;
  end loop;
  -- Read after the locks. The stored slice cannot be later than this one, unless the clock was set
  -- back. Then it counts as the current slice, so that the window continues before the clock
  -- reaches that time again.
  v_now := extract(epoch from clock_timestamp());
  slice := floor(v_now / 5)::bigint;
  for v_s in 1..v_n loop
    if v_last[v_s] > slice + 1 then v_last[v_s] := slice; end if;
  end loop;
  for v_s in 1..v_n loop slice := greatest(slice, v_last[v_s]); end loop;
  for v_s in 1..v_n loop
    v_shift := least(slice - v_last[v_s], v_slices);
    if v_shift > 0 then
      v_at := v_start[v_s];
      v_gone := array_fill(0::bigint, array[v_shift]);
      v_requests[v_at + 1:v_at + v_slices] := v_gone || v_requests[v_at + 1:v_at + v_slices - v_shift];
      v_tokens[v_at + 1:v_at + v_slices] := v_gone || v_tokens[v_at + 1:v_at + v_slices - v_shift];
    end if;
    v_others[v_s] := 0;
    if p_concurrency[v_s] is not null then
      v_is_concurrent := true;
      select coalesce(sum(r.running), 0)::integer into v_i from limit_running r
        join node d on d.id = r.node_id and d.ended is null
        where r.subject = p_subjects[v_s] and r.node_id <> p_node;
      v_others[v_s] := v_i;
    end if;
  end loop;
  for v_i in 1..coalesce(cardinality(p_return_subjects), 0) loop
    v_shift := slice - p_return_slices[v_i];
    if v_shift between 0 and v_slices - 1 then
      v_at := v_start[p_return_subjects[v_i]] + v_shift + 1;
      v_tokens[v_at] := greatest(v_tokens[v_at] - p_return_tokens[v_i], 0);
    end if;
  end loop;
  for v_s in 1..v_n loop
    v_at := v_start[v_s];
    -- One expression each: a loop takes ten times as long.
    used_requests[v_s] := v_requests[v_at + 1] + v_requests[v_at + 2] + v_requests[v_at + 3] + v_requests[v_at + 4]
      + v_requests[v_at + 5] + v_requests[v_at + 6] + v_requests[v_at + 7] + v_requests[v_at + 8]
      + v_requests[v_at + 9] + v_requests[v_at + 10] + v_requests[v_at + 11] + v_requests[v_at + 12] + v_requests[v_at + 13];
    used_tokens[v_s] := v_tokens[v_at + 1] + v_tokens[v_at + 2] + v_tokens[v_at + 3] + v_tokens[v_at + 4]
      + v_tokens[v_at + 5] + v_tokens[v_at + 6] + v_tokens[v_at + 7] + v_tokens[v_at + 8]
      + v_tokens[v_at + 9] + v_tokens[v_at + 10] + v_tokens[v_at + 11] + v_tokens[v_at + 12] + v_tokens[v_at + 13];
  end loop;

  v_added := array_fill(0, array[v_n]);
  for v_i in 1..coalesce(cardinality(p_tokens), 0) loop
    v_by := 0;
    for v_at in 3 * v_i - 2..3 * v_i loop
      v_s := p_members[v_at];
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
      -- The oldest slices expire first, until enough requests or tokens have expired.
      v_sum := 0;
      for v_at in reverse v_slices..1 loop
        v_sum := v_sum + case v_why when 1 then v_requests[v_start[v_by] + v_at]
          else v_tokens[v_start[v_by] + v_at] end;
        retry_ms[v_i] := ceil(((slice + v_slices - v_at + 1) * 5 - v_now) * 1000);
        exit when v_sum >= v_need;
      end loop;
    else
      for v_at in 3 * v_i - 2..3 * v_i loop
        v_s := p_members[v_at];
        continue when v_s = 0;
        used_requests[v_s] := used_requests[v_s] + 1;
        used_tokens[v_s] := used_tokens[v_s] + p_tokens[v_i];
        v_added[v_s] := v_added[v_s] + 1;
        v_shift := v_start[v_s] + 1;
        v_requests[v_shift] := v_requests[v_shift] + 1;
        v_tokens[v_shift] := v_tokens[v_shift] + p_tokens[v_i];
      end loop;
    end if;
  end loop;

  update limit_use u set slice = limit_admit.slice,
      requests = v_requests[t.start + 1:t.start + v_slices],
      tokens = v_tokens[t.start + 1:t.start + v_slices]
    from unnest(p_subjects, v_start) as t(subject, start)
    where u.subject = t.subject;
  if v_is_concurrent then
    insert into limit_running as r (subject, node_id, running)
      select t.subject, p_node, t.running + t.added
        from unnest(p_subjects, p_running, v_added, p_concurrency) as t(subject, running, added, limited)
        where t.limited is not null
      on conflict (subject, node_id) do update set running = excluded.running
        where r.running <> excluded.running;
  end if;
end $$;
